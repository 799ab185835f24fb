//! Names of environment variables that a manifest must not choose for somebody else's command.

/// Names that change how programs start, find others or log in.
const NAMES: [&str; 17] = [
    "BASH_ENV",
    "BASHOPTS",
    "CDPATH",
    "ENV",
    "GLOBIGNORE",
    "HOME",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "KUBECONFIG",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "RUBYLIB",
    "RUBYOPT",
    "SHELL",
    "SHELLOPTS",
    "TMPDIR",
];
/// Beginnings of such names, and of Keelway's own.
const PREFIXES: [&str; 16] = [
    "AWS_",
    "AZURE_",
    "BASH_FUNC_",
    "DEPLOYMENT_",
    "DYLD_",
    "GIT_",
    "GOOGLE_",
    "KEELWAY_",
    "LC_",
    "LD_",
    "MALLOC_",
    "NODE_",
    "OPENSHIFT_DEPLOYMENT_",
    "PERL5",
    "PYTHON",
    "SSH_",
];

/// Whether a variable changes how programs start, is a credential, or is Keelway's own. Whoever applies a manifest must not set it for a
/// deployer's command, which runs with the operator's rights. Upper and lower case are the same here.
pub fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_start_programs_are_reserved_and_others_are_not() {
        for name in [
            "BASH_ENV",
            "path",
            "LD_PRELOAD",
            "PYTHONSTARTUP",
            "NODE_OPTIONS",
            "GIT_SSH_COMMAND",
            "AWS_PROFILE",
            "DEPLOYMENT_CALLBACK",
        ] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["REGION", "COLOR", "MY_PATH", "PARAM_PATH", "ENVIRONMENT"] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
