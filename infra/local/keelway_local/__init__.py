"""The local cloud: an AWS emulator on loopback, and the deployment of infra/template.yaml into it."""
