//! What is done here without git is what git does: the same ids, lists and refusals.

use super::*;

const FILES: [&str; 9] = ["a", "a.txt", "a/b", "a/c/d", "a-b", "apps/prod.yaml", "apps/test.yaml", "apps/é", "z"];

/// A repository, and the commits that were made in it: lines, merges, and a second root.
struct Made {
    _folder: tempfile::TempDir,
    git: Git,
    commits: Vec<String>,
}

impl Made {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::at(folder.path().join("shop.git"));
        git.init("main").unwrap();
        let mut made = Self { _folder: folder, git, commits: vec![] };
        // The parents of each commit, by their numbers.
        let parents: [&[usize]; 14] = [&[], &[0], &[1], &[2], &[1], &[4], &[3, 5], &[6], &[], &[8], &[7, 9], &[10], &[11], &[6, 0]];
        for (number, parents) in parents.into_iter().enumerate() {
            let base = parents.first().map(|parent| made.commits[*parent].clone());
            let tree = made.with_changes(base.as_deref(), number);
            let parents = parents.iter().map(|parent| made.commits[*parent].clone()).collect();
            made.commits.push(made.git.write_commit(&commit(&tree, parents, number)).unwrap());
        }
        made
    }

    /// Stores a tree with changes, and compares its id with the one that git's index arrives at.
    fn with_changes(&self, base: Option<&str>, number: usize) -> String {
        let git = &self.git;
        let mut changes: Vec<Change> = vec![];
        for at in 0..4 {
            let path = FILES[(number * 5 + at * 7) % FILES.len()];
            let sha = git.write_blob(format!("{number}\n{at}\n").as_bytes()).unwrap();
            let mode = ["100644", "100755", "120000"][(number + at) % 3];
            changes.push((path.to_owned(), (at != 2).then(|| (mode.to_owned(), sha))));
        }
        let tree = git.write_tree(base, &changes).unwrap();
        let environment = [("GIT_INDEX_FILE", format!("index-{number}"))];
        git.output(&["read-tree", base.unwrap_or("--empty")], None, &environment).unwrap();
        let line = |(path, object): &Change| match object {
            Some((mode, sha)) => format!("{mode} {sha}\t{path}\0"),
            None => format!("0 {}\t{path}\0", "0".repeat(40)),
        };
        let lines: String = changes.iter().map(line).collect();
        git.output(&["update-index", "-z", "--index-info"], Some(lines.as_bytes()), &environment).unwrap();
        assert_eq!(tree, said(&git.output(&["write-tree"], None, &environment).unwrap()), "{changes:?} on {base:?}");
        tree
    }

    /// What git says, in lines.
    fn git(&self, arguments: &[&str]) -> Vec<String> {
        self.git.text(arguments).unwrap().lines().map(str::to_owned).collect()
    }

    /// Compares every answer about the commits, and about each two of them, with git's.
    fn compare(&self, git: &Git) {
        for sha in &self.commits {
            let commit = git.commit(sha).unwrap().unwrap();
            let line = format!("{} {} {} {}", commit.tree, commit.parents.join(" "), commit.author.name, commit.committer.at);
            assert_eq!(self.git(&["show", "-s", "--format=%T %P %an %ct", sha]), [line]);
            for (recursive, more) in [(false, None), (true, Some(["-r", "-t"]))] {
                let tree = git.tree(sha, recursive).unwrap();
                let size = |entry: &Entry| entry.size.map_or_else(|| "-".to_owned(), |size| size.to_string());
                let lines: Vec<_> = tree
                    .iter()
                    .map(|entry| format!("{} {} {} {:>7}\t{}", entry.mode, entry.kind, entry.sha, size(entry), entry.path))
                    .collect();
                let listed = self
                    .git
                    .output(
                        &[&["ls-tree", "-z", "-l"][..], more.as_ref().map_or(&[], |more| &more[..]), &[sha]].concat(),
                        None,
                        &[],
                    )
                    .unwrap();
                assert_eq!(lines, said(&listed).split_terminator('\0').collect::<Vec<_>>(), "{sha} recursive: {recursive}");
            }
            for path in FILES.iter().chain(&["apps", "apps/none", "z/none", "a/c"]) {
                let entry =
                    git.entry(sha, path).unwrap().map(|entry| format!("{} {} {}\t{path}", entry.mode, entry.kind, entry.sha));
                let listed = said(&self.git.output(&["ls-tree", "-z", sha, "--", path], None, &[]).unwrap());
                assert_eq!(entry.as_deref().unwrap_or_default(), listed.trim_end_matches('\0'), "{path} of {sha}");
                for limit in [1, 2, 100] {
                    let max = format!("--max-count={limit}");
                    assert_eq!(
                        git.history(sha, path, limit).unwrap(),
                        self.git(&["rev-list", &max, sha, "--", path]),
                        "{path} of {sha}"
                    );
                }
            }
            assert_eq!(git.history(sha, "", 3).unwrap(), self.git(&["rev-list", "--max-count=3", sha]));
            for other in &self.commits {
                self.compare_two(git, sha, other);
            }
        }
    }

    fn compare_two(&self, git: &Git, one: &str, other: &str) {
        let is_ancestor = self.git.run(&["merge-base", "--is-ancestor", one, other], None, &[]).unwrap().status.success();
        assert_eq!(git.is_ancestor(one, other).unwrap(), is_ancestor, "{one} {other}");
        assert_eq!(git.log(one, other).unwrap(), self.git(&["rev-list", other, &format!("^{one}")]), "{one} {other}");
        let base = self.git.run(&["merge-base", one, other], None, &[]).unwrap();
        assert_eq!(git.merge_base(one, other).unwrap().unwrap_or_default(), said(&base.stdout), "{one} {other}");
        let letters = self.git.text(&["diff-tree", "-r", "-z", "--no-renames", "--name-status", one, other]).unwrap();
        let changed: String = git.changed(one, other).unwrap().iter().map(|(letter, path)| format!("{letter}\0{path}\0")).collect();
        assert_eq!(changed, letters, "{one} {other}");
        let merged = self.git.run(&["merge-tree", "--write-tree", "--allow-unrelated-histories", one, other], None, &[]).unwrap();
        let tree = git.merge(one, other).unwrap().ok();
        assert_eq!(tree, merged.status.success().then(|| said(&merged.stdout)), "{one} {other}");
    }
}

fn said(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim_end_matches('\n').to_owned()
}

fn person(name: &str) -> Signature {
    Signature { name: name.to_owned(), email: "ann@example.com".into(), at: 1_700_000_000 }
}

fn commit(tree: &str, parents: Vec<String>, number: usize) -> Commit {
    let at = |name| Signature { at: 1_700_000_000 + number as i64, ..person(name) };
    Commit {
        sha: String::new(),
        tree: tree.to_owned(),
        parents,
        author: at("Ann"),
        committer: at("Bob"),
        message: format!("{number}\n"),
    }
}

#[test]
fn trees_and_lines_of_commits_are_those_of_git_packed_or_not() {
    let made = Made::new();
    assert_eq!(made.git(&["fsck", "--strict", "--no-dangling"]), [""; 0]);
    made.compare(&made.git);
    made.compare(&Git::at(made.git.path().to_owned()));
    for (number, commit) in made.commits.iter().enumerate() {
        assert!(made.git.update(&format!("refs/heads/{number}"), Some(commit), None).unwrap());
    }
    made.git.text(&["repack", "-a", "-d", "--quiet"]).unwrap();
    made.git.text(&["prune-packed"]).unwrap();
    let packed = Git::at(made.git.path().to_owned());
    assert!(packed.loose_object(&made.commits[3]).is_none(), "it is packed");
    made.compare(&packed);
}

#[test]
fn a_commit_has_the_id_that_git_gives_it_whatever_is_in_the_names() {
    let made = Made::new();
    let tree = made.git.commit(&made.commits[5]).unwrap().unwrap().tree;
    let parents = [made.commits[5].clone(), made.commits[2].clone(), made.commits[5].clone()];
    for (name, email, message) in [
        ("Ann", "ann@example.com", "One line"),
        (" Ann Lee, ", "<ann@example.com>", "Two\n\nlines\n"),
        ("\"Ann\" <Lee>\n.", "", ""),
        ("Ann;:", ".a,n:n.", "\n\nspace \n\n"),
        ("Änn é", "ann@例え.jp", "ü\r\n"),
    ] {
        let author = Signature { name: name.into(), email: email.into(), at: 1_700_000_001 };
        let (parents, committer, message) = (parents.to_vec(), person("Bob"), message.to_owned());
        let ours = made
            .git
            .write_commit(&Commit { sha: String::new(), tree: tree.clone(), parents, author, committer, message: message.clone() })
            .unwrap();
        let environment = [
            ("GIT_AUTHOR_NAME", name.to_owned()),
            ("GIT_AUTHOR_EMAIL", email.to_owned()),
            ("GIT_AUTHOR_DATE", "@1700000001 +0000".to_owned()),
            ("GIT_COMMITTER_NAME", "Bob".to_owned()),
            ("GIT_COMMITTER_EMAIL", "ann@example.com".to_owned()),
            ("GIT_COMMITTER_DATE", "@1700000000 +0000".to_owned()),
        ];
        let arguments = ["commit-tree", &tree, "-p", &made.commits[5], "-p", &made.commits[2], "-p", &made.commits[5]];
        assert_eq!(ours, said(&made.git.output(&arguments, Some(message.as_bytes()), &environment).unwrap()), "{name:?}");
    }
    for (name, message, at) in [("<>", "", 0), ("", "", 0), ("Ann", "\0", 0), ("Ann", "", -1)] {
        let refused = Commit { author: Signature { at, ..person(name) }, message: message.into(), ..commit(&tree, vec![], 0) };
        made.git.write_commit(&refused).unwrap_err();
    }
}

#[test]
fn paths_that_git_refuses_are_refused_and_a_directory_is_put_in_its_place() {
    let made = Made::new();
    let sha = made.git.write_blob(b"text").unwrap();
    for path in ["", "/a", "a//b", "a/", "../a", "a/./b", ".git/config", "a/.GIT", "a\0b"] {
        made.git.write_tree(None, &[(path.to_owned(), Some(("100644".into(), sha.clone())))]).unwrap_err();
    }
    let directory = made.git.write_tree(None, &[("x/y".into(), Some(("100644".into(), sha.clone())))]).unwrap();
    let change = |path: &str| [(path.to_owned(), Some(("040000".to_owned(), directory.clone())))];
    let tree = made.git.write_tree(Some(&made.commits[7]), &change("apps")).unwrap();
    let below: Vec<_> =
        made.git.tree(&tree, true).unwrap().into_iter().map(|entry| entry.path).filter(|path| path.starts_with("apps")).collect();
    assert_eq!(below, ["apps", "apps/x", "apps/x/y"]);
    assert_eq!(made.git.entry(&tree, "apps").unwrap().unwrap().sha, directory);
    assert_eq!(made.git(&["fsck", "--strict", "--no-dangling"]), [""; 0]);
}

#[test]
fn a_reference_moves_only_from_where_it_is_and_never_while_another_moves_it() {
    let made = Made::new();
    let [one, two, three] = [0, 1, 2].map(|at| made.commits[at].as_str());
    let (git, main) = (&made.git, "refs/heads/main");
    let at = |git: &Git| git.branch("main").unwrap();
    assert!(!git.update(main, Some(one), Some(two)).unwrap(), "it does not exist");
    assert!(git.update(main, Some(one), None).unwrap());
    assert!(!git.update(main, Some(two), None).unwrap(), "it exists");
    assert!(!git.update(main, Some(two), Some(three)).unwrap(), "it is elsewhere");
    assert_eq!(at(git).as_deref(), Some(one));
    assert_eq!(made.git(&["rev-parse", "main"]), [one]);
    let lock = git.path().join("refs/heads/main.lock");
    std::fs::write(&lock, "").unwrap();
    assert!(!git.update(main, Some(two), Some(one)).unwrap(), "another one has the lock");
    assert!(lock.exists(), "which is not ours");
    std::fs::remove_file(&lock).unwrap();
    assert!(!git.update("refs/heads/main/more", Some(one), None).unwrap(), "a file is no directory");
    assert!(git.update("refs/heads/deep/er", Some(one), None).unwrap());
    assert!(!git.update("refs/heads/deep", Some(one), None).unwrap(), "a directory is no file");
    let tree = git.commit(one).unwrap().unwrap().tree;
    assert!(!git.update("refs/heads/tree", Some(&tree), None).unwrap(), "a branch is a commit");
    assert!(!git.update("refs/heads/none", Some(&"12".repeat(20)), None).unwrap(), "nothing has this id");
    made.git(&["pack-refs", "--all"]);
    assert_eq!(at(git).as_deref(), Some(one));
    assert!(!git.update(main, Some(two), None).unwrap() && !git.update(main, Some(two), Some(three)).unwrap());
    assert!(git.update(main, Some(two), Some(one)).unwrap());
    assert!(git.update(main, None, Some(two)).unwrap());
    assert_eq!(at(git), None);
    // Of eight that move it from the same commit, one succeeds.
    assert!(git.update(main, Some(one), None).unwrap());
    std::fs::remove_file(git.path().join("packed-refs")).unwrap();
    let moved = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| git.update(main, Some(two), Some(one)).unwrap())).collect();
        all.into_iter().map(|moved| moved.join().unwrap()).filter(|moved| *moved).count()
    });
    assert_eq!((moved, at(git).as_deref()), (1, Some(two)));
    assert!(!lock.exists());
}
