//! Pull requests: open, edit, close, merge. Merges are made by git.

use crate::model::{Comment, Happened, Method, Pull, Repository, State, now};
use crate::refused::Refused;

/// A pull request to be opened.
#[derive(Debug, Clone, Default)]
pub struct NewPull {
    pub title: String,
    /// The description.
    pub body: String,
    /// The branch to be merged.
    pub head: String,
    /// The branch to merge into.
    pub base: String,
    /// Whether the head may have no commits of its own. Gitea and GitLab allow this, GitHub and Bitbucket do not.
    pub empty: bool,
}

/// The options of a merge.
#[derive(Debug, Clone)]
pub struct Merge {
    pub method: Method,
    /// If set, the head must be this commit.
    pub head: Option<String>,
    /// The message of the commit. Default: that of the host.
    pub message: Option<String>,
}

impl Merge {
    /// A merge by this method, whatever the head is.
    pub fn by(method: Method) -> Self {
        Self { method, head: None, message: None }
    }
}

impl Pull {
    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    fn touch(&mut self) {
        self.version += 1;
        self.updated = now();
    }
}

impl Repository {
    /// A pull request by its number.
    pub fn pull(&self, number: u64) -> Result<&Pull, Refused> {
        self.pulls.get(&number).ok_or(Refused::Pull)
    }

    /// Moves open pull requests to the present tips of their branches, which people may have pushed to directly.
    pub fn refresh(&mut self) -> Result<(), Refused> {
        let tips = self.git.tips();
        for pull in self.pulls.values_mut().filter(|pull| pull.is_open()) {
            let tip = match &tips {
                Some(tips) => tips.get(&pull.head).filter(|tip| **tip != pull.head_sha).cloned(),
                None => self.git.branch(&pull.head)?.filter(|tip| *tip != pull.head_sha),
            };
            if let Some(tip) = tip {
                pull.head_sha = tip;
                pull.touch();
                self.changed = true;
            }
        }
        Ok(())
    }

    /// Opens a pull request, and returns its number.
    pub fn open(&mut self, new: &NewPull, by: &str) -> Result<u64, Refused> {
        let base_sha = self.git.branch(&new.base)?.ok_or_else(|| Refused::BaseMissing(new.base.clone()))?;
        let head_sha = self.git.branch(&new.head)?.ok_or_else(|| Refused::HeadMissing(new.head.clone()))?;
        let same = |pull: &&Pull| pull.is_open() && pull.head == new.head && pull.base == new.base;
        if let Some(open) = self.pulls.values().find(same) {
            return Err(Refused::PullExists { number: open.number, head: new.head.clone(), base: new.base.clone() });
        }
        if !new.empty && self.git.is_ancestor(&head_sha, &base_sha)? {
            return Err(Refused::NoCommits { base: new.base.clone(), head: new.head.clone() });
        }
        self.last += 1;
        let number = self.last;
        let at = now();
        let pull = Pull {
            number,
            title: new.title.clone(),
            body: new.body.clone(),
            author: by.to_owned(),
            head: new.head.clone(),
            head_sha,
            base: new.base.clone(),
            base_sha,
            state: State::Open,
            merge_commit: None,
            merged_by: None,
            version: 0,
            created: at,
            updated: at,
            closed: None,
            ended_at: None,
            comments: vec![],
        };
        self.pulls.insert(number, pull);
        self.happens(Happened::Opened, number, by);
        Ok(number)
    }

    /// Changes title or description.
    pub fn edit(&mut self, number: u64, title: Option<String>, body: Option<String>) -> Result<(), Refused> {
        let pull = self.pulls.get_mut(&number).ok_or(Refused::Pull)?;
        let before = (pull.title.clone(), pull.body.clone());
        pull.title = title.unwrap_or_else(|| before.0.clone());
        pull.body = body.unwrap_or_else(|| before.1.clone());
        if (&pull.title, &pull.body) != (&before.0, &before.1) {
            pull.touch();
            self.changed = true;
        }
        Ok(())
    }

    /// Changes the base branch.
    pub fn retarget(&mut self, number: u64, base: &str) -> Result<(), Refused> {
        let base_sha = self.git.branch(base)?.ok_or_else(|| Refused::BaseMissing(base.to_owned()))?;
        let pull = self.pulls.get_mut(&number).ok_or(Refused::Pull)?;
        if pull.base != base {
            (pull.base, pull.base_sha) = (base.to_owned(), base_sha);
            pull.touch();
            self.changed = true;
        }
        Ok(())
    }

    /// Closes it without a merge. A closed one stays as it is.
    pub fn close(&mut self, number: u64, by: &str) -> Result<(), Refused> {
        let pull = self.pull(number)?;
        match pull.state {
            State::Merged => return Err(Refused::State(State::Merged)),
            State::Closed => return Ok(()),
            State::Open => {}
        }
        let base = self.git.branch(&pull.base)?;
        let pull = self.pulls.get_mut(&number).ok_or(Refused::Pull)?;
        (pull.state, pull.ended_at) = (State::Closed, base);
        pull.touch();
        pull.closed = Some(pull.updated);
        self.happens(Happened::Closed, number, by);
        Ok(())
    }

    /// Reopens it, if its branches exist and no other one took its place.
    pub fn reopen(&mut self, number: u64, by: &str) -> Result<(), Refused> {
        let pull = self.pull(number)?.clone();
        match pull.state {
            State::Merged => return Err(Refused::State(State::Merged)),
            State::Open => return Ok(()),
            State::Closed => {}
        }
        self.git.branch(&pull.base)?.ok_or_else(|| Refused::BaseMissing(pull.base.clone()))?;
        self.git.branch(&pull.head)?.ok_or_else(|| Refused::HeadMissing(pull.head.clone()))?;
        if let Some(open) = self.pulls.values().find(|other| other.is_open() && other.head == pull.head && other.base == pull.base)
        {
            return Err(Refused::PullExists { number: open.number, head: pull.head, base: pull.base });
        }
        let pull = self.pulls.get_mut(&number).ok_or(Refused::Pull)?;
        pull.state = State::Open;
        (pull.closed, pull.ended_at) = (None, None);
        pull.touch();
        self.happens(Happened::Reopened, number, by);
        self.refresh()
    }

    /// Comments on it, and returns the id of the comment.
    pub fn comment(&mut self, number: u64, body: &str, by: &str) -> Result<u64, Refused> {
        let pull = self.pulls.get_mut(&number).ok_or(Refused::Pull)?;
        self.last_comment += 1;
        pull.comments.push(Comment { id: self.last_comment, author: by.to_owned(), body: body.to_owned(), created: now() });
        pull.updated = now();
        self.changed = true;
        Ok(self.last_comment)
    }

    /// Whether an open pull request merges without conflicts, and whether that was known before this call.
    pub fn mergeable(&mut self, number: u64) -> Result<(bool, bool), Refused> {
        let pull = self.pull(number)?;
        let base = match &pull.ended_at {
            Some(base) => Some(base.clone()),
            None => self.git.branch(&pull.base)?,
        };
        let Some(base) = base else { return Ok((false, true)) };
        let key = (base, pull.head_sha.clone());
        if let Some(clean) = self.clean.get(&key) {
            return Ok((*clean, true));
        }
        let clean = self.git.merge(&key.0, &key.1)?.is_ok();
        self.clean.insert(key, clean);
        Ok((clean, false))
    }

    /// Merges it, and returns the new commit of the base branch.
    pub fn merge(&mut self, number: u64, merge: &Merge, by: &str) -> Result<String, Refused> {
        self.refresh()?;
        let pull = self.pull(number)?.clone();
        if !pull.is_open() {
            return Err(Refused::State(pull.state));
        }
        if !self.methods.contains(&merge.method) {
            return Err(Refused::MergeMethod(format!("{:?}", merge.method).to_lowercase()));
        }
        if let Some(given) = merge.head.as_ref().filter(|given| **given != pull.head_sha) {
            return Err(Refused::HeadMoved { given: given.clone(), found: pull.head_sha });
        }
        let base = self.git.branch(&pull.base)?.ok_or_else(|| Refused::BaseMissing(pull.base.clone()))?;
        let tree = self.git.merge(&base, &pull.head_sha)?.map_err(Refused::Conflict)?;
        let (parents, default) = match merge.method {
            Method::Merge => {
                let title = format!("Merge pull request #{number} from {}/{}\n\n{}", self.owner, pull.head, pull.title);
                (vec![base.clone(), pull.head_sha.clone()], title)
            }
            Method::Squash => (vec![base.clone()], format!("{} (#{number})\n\n{}", pull.title, pull.body)),
        };
        let message = merge.message.clone().unwrap_or(default);
        let sha = self.commit_tree(&tree, &parents, &message, by)?;
        if !self.git.update(&format!("refs/heads/{}", pull.base), Some(&sha), Some(&base))? {
            return Err(Refused::FastForward);
        }
        let pull = self.pulls.get_mut(&number).ok_or(Refused::Pull)?;
        pull.state = State::Merged;
        pull.touch();
        pull.closed = Some(pull.updated);
        pull.ended_at = Some(base.clone());
        pull.base_sha = base;
        pull.merge_commit = Some(sha.clone());
        pull.merged_by = Some(by.to_owned());
        self.happens(Happened::Merged, number, by);
        Ok(sha)
    }

    /// The two commits whose difference the pull request is.
    pub fn span(&self, pull: &Pull) -> Result<(String, String), Refused> {
        let base = if pull.is_open() {
            self.git.branch(&pull.base)?.unwrap_or_else(|| pull.base_sha.clone())
        } else {
            pull.base_sha.clone()
        };
        let fork = self.git.merge_base(&base, &pull.head_sha)?.unwrap_or(base);
        Ok((fork, pull.head_sha.clone()))
    }

    fn happens(&mut self, what: Happened, number: u64, by: &str) {
        self.changed = true;
        self.happened.push((what, number, by.to_owned()));
    }
}
