//! Environment variables that a manifest must not set for a command of somebody else.

/// Variables that affect how programs start, connect or log in.
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
/// Prefixes of such variables, and of Keelway's own.
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

/// Whether a variable affects how programs start, contains a credential, or is Keelway's own. A deployer's command runs with the
/// operator's rights, so a manifest must not set these. The comparison ignores case.
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
