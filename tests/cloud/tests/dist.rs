//! `make dist`: what its archives hold, from files that stand for the binaries. Building them is too much for a test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pack(built: &Path, to: &Path) -> Output {
    let python = std::env::var("KEELWAY_VENV_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut command = Command::new(python);
    command.arg(repository().join("infra/local/dist.py")).arg("--pack").arg(built).arg("--to").arg(to).output().unwrap()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Every function of the template, as built for an architecture.
fn functions() -> Vec<String> {
    let template = std::fs::read_to_string(repository().join("infra/template.yaml")).unwrap();
    let packages = template.lines().filter_map(|line| line.trim().strip_prefix("CodeUri: ../target/lambda/"));
    packages.map(|rest| rest.strip_suffix("/bootstrap.zip").unwrap().to_owned()).collect()
}

fn listed(archive: &Path) -> Vec<String> {
    let listed = Command::new("tar").arg("-tzvf").arg(archive).output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn all(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn a_release_has_the_command_the_stack_and_their_checksums() {
    let directory = tempfile::tempdir().unwrap();
    let (built, to, again) = (directory.path().join("built"), directory.path().join("to"), directory.path().join("again"));
    let functions = functions();
    assert!(functions.len() >= 9, "{functions:?}");
    for arch in ["x86_64", "arm64"] {
        write(&built.join(arch).join("keelway"), arch);
        for function in &functions {
            write(&built.join(arch).join("lambda").join(function).join("bootstrap.zip"), function);
        }
        // The build packs whatever programs it finds for the target.
        write(&built.join(arch).join("lambda/keelway/bootstrap.zip"), "the command");
    }
    let packed = pack(&built, &to);
    assert!(packed.status.success(), "{packed:?}");
    let stack = listed(&to.join("keelway-0.1.0-stack-arm64.tar.gz"));
    let holds = |mode: &str, name: &str| stack.iter().any(|line| line.starts_with(mode) && line.ends_with(name));
    for function in &functions {
        assert!(holds("-rw-r--r--", &format!("keelway-0.1.0-stack-arm64/target/lambda/{function}/bootstrap.zip")), "{stack:#?}");
    }
    assert_eq!(stack.iter().filter(|line| line.ends_with("/bootstrap.zip")).count(), functions.len(), "{stack:#?}");
    assert!(
        holds("-rw-r--r--", "/infra/template.yaml")
            && holds("-rwxr-xr-x", "/infra/deploy.sh")
            && holds("-rw-r--r--", "/README.txt")
    );
    let command = listed(&to.join("keelway-0.1.0-linux-x86_64.tar.gz"));
    assert!(command.iter().any(|line| line.starts_with("-rwxr-xr-x") && line.ends_with("/keelway")), "{command:#?}");
    let checked = Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&to).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    assert_eq!(String::from_utf8_lossy(&checked.stdout).lines().count(), 4, "every archive has a checksum");
    // The same files make the same archives.
    assert!(pack(&built, &again).status.success());
    assert_eq!(all(&to), all(&again));
}

#[test]
fn what_was_not_built_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let packed = pack(&directory.path().join("built"), &directory.path().join("to"));
    assert_eq!(packed.status.code(), Some(1));
    let said = String::from_utf8_lossy(&packed.stderr).into_owned();
    assert!(said.contains("holds no keelway, or no lambda/<function>/bootstrap.zip: build them first"), "{said}");
}
