//! Opens a pull request that sets the marked values to a version.

use crate::archive;
use crate::client::{Branched, Client, File, NewBranch, NewFile, NewRequest, Request, State};
use crate::error::{HostError, Kind};
use crate::marker;
use crate::repository::Repository;

/// The prefix of the branches of promotions. No other branch is ever written or deleted.
pub const BRANCHES: &str = "promotion/";
/// The most files that one promotion changes.
const FILES: usize = 100;
/// The longest title that every host accepts, in characters.
const TITLE: usize = 255;
/// The most notes in a message.
const NOTES: usize = 5;

/// A pull request to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    #[expect(missing_docs, reason = "the name says it")]
    pub repository: Repository,
    /// The branch to merge into.
    pub base: String,
    /// The branch of the pull request, by which it is found again. Begins with [`BRANCHES`].
    pub head: String,
    /// `<namespace>:<pipeline>:<environment>`: the marker of the values that change.
    pub marker: String,
    /// The new value.
    pub version: String,
    /// The title, which is cut at 255 characters.
    pub title: String,
    /// The description.
    pub body: String,
    /// The message of the commit.
    pub message: String,
    /// Whether no earlier attempt can have begun it. Then nothing is searched for at first; if the host refuses something because
    /// it exists, the search follows.
    pub first: bool,
}

/// The result of a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposed {
    /// The pull request was opened.
    Opened(Request),
    /// The branch had a pull request, in some state.
    Found(Request),
    /// Every marked value of the base branch is the version already. There is no branch.
    Nothing,
}

/// The pull request that counts: open before merged before closed, then the newest.
pub(crate) fn best(requests: Vec<Request>) -> Option<Request> {
    let rank = |request: &Request| match request.state {
        State::Open => 2,
        State::Merged { .. } => 1,
        State::Closed => 0,
    };
    requests.into_iter().max_by_key(|request| (rank(request), request.number))
}

/// Refuses branches that do not belong to promotions.
pub(crate) fn check_branch(branch: &str) -> Result<(), HostError> {
    let rest = branch.strip_prefix(BRANCHES).unwrap_or_default();
    // Stricter than git: https://git-scm.com/docs/git-check-ref-format
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let odd = rest.is_empty()
        || rest.len() > 200
        || !rest.chars().all(fine)
        || rest.contains("..")
        || rest.split('/').any(|part| part.is_empty() || part.starts_with('.') || part.ends_with('.') || part.ends_with(".lock"));
    if odd {
        return Err(HostError::new(
            Kind::Refused,
            format!("{branch:?} is not a branch of promotions: it must begin with {BRANCHES}"),
        ));
    }
    Ok(())
}

/// What an attempt has read, which is not read again if a later request of the attempt fails.
#[derive(Debug)]
pub(crate) struct Read {
    base: String,
    files: Vec<NewFile>,
    /// Whether the files come from the archive only.
    packed: bool,
}

/// Opens the pull request, unless it exists. May be repeated after any failure: what exists already is found and used. `first`: no
/// earlier attempt can have begun it. `read`: what was read before the failure.
pub(crate) async fn propose<C: Client>(
    client: &C,
    change: &Change,
    first: bool,
    read: &mut Option<Read>,
) -> Result<Proposed, HostError> {
    check_branch(&change.head)?;
    if first {
        match at_once(client, change, read).await {
            Ok(Some(request)) => return Ok(Proposed::Opened(request)),
            // Something exists already, or the credentials do not suffice: search for it, and report it.
            Ok(None) => *read = None,
            Err(error) if matches!(error.kind, Kind::Refused | Kind::Forbidden | Kind::NotFound | Kind::Credentials) => {
                *read = None
            }
            Err(error) => return Err(error),
        }
    }
    looking_first(client, change, read).await
}

/// Opens a pull request that does not exist, with as few requests as possible: instead of a search, the host's refusal shows what
/// exists. `None`: something exists, or there is nothing to change.
async fn at_once<C: Client>(client: &C, change: &Change, read: &mut Option<Read>) -> Result<Option<Request>, HostError> {
    let of = &change.repository;
    let Some(base) = client.tip(of, &change.base).await? else { return Ok(None) };
    let candidates = candidates(client, change, &base).await?;
    let mut source = Source { of, base: &base, packed: File::can_be_packed(&base) };
    let mut files = edited(client, change, &source, candidates.clone()).await?;
    if source.packed && !files.is_empty() && !client.compares(&files) {
        source.packed = false;
        files = edited(client, change, &source, candidates).await?;
    }
    let packed = source.packed;
    let read = read.insert(Read { base, files, packed });
    if read.files.is_empty() || !matches!(client.branch(of, new_branch(change, read)).await?, Branched::Done(_)) {
        return Ok(None);
    }
    open(client, change).await.map(Some)
}

/// Opens a pull request that may have been begun. The credentials are checked before the first read.
async fn looking_first<C: Client>(client: &C, change: &Change, read: &mut Option<Read>) -> Result<Proposed, HostError> {
    let of = &change.repository;
    let found = async || Ok::<_, HostError>(best(client.find(of, &change.head, Some(&change.base)).await?));
    if let Some(request) = found().await? {
        return Ok(Proposed::Found(request));
    }
    loop {
        let known = match read.take() {
            Some(known) => known,
            None => read_all(client, change).await?,
        };
        let known = read.insert(known);
        let tip = client.tip(of, &change.head).await?;
        if known.files.is_empty() {
            if tip.is_some() {
                // An earlier attempt stopped after it made the branch, and the values were changed in another way.
                client.delete_branch(of, &change.head).await?;
            }
            return Ok(Proposed::Nothing);
        }
        let new = new_branch(change, known);
        let made = match tip {
            // This attempt has made the branch, and its commit failed.
            Some(tip) if known.packed && tip == known.base => {
                matches!(client.branch(of, NewBranch { begun: true, ..new }).await?, Branched::Done(_))
            }
            Some(tip) => is_as_wanted(client, of, &tip, &new).await?,
            None => matches!(client.branch(of, new).await?, Branched::Done(_)),
        };
        if made {
            break;
        }
        if known.packed {
            // The content of an archive must not replace anything that the host does not compare.
            *read = None;
            continue;
        }
        // Another worker may have opened a pull request meanwhile, whose branch must not be deleted.
        if let Some(request) = found().await? {
            return Ok(Proposed::Found(request));
        }
        client.branch(of, NewBranch { replace: true, ..new }).await?;
        break;
    }
    match open(client, change).await {
        Ok(request) => Ok(Proposed::Opened(request)),
        // A pull request may exist, opened meanwhile or by a request whose answer was lost.
        Err(error) if error.kind == Kind::Refused => found().await?.map(Proposed::Found).ok_or(error),
        Err(error) => Err(error),
    }
}

/// Checks the credentials, then reads the base and the files.
async fn read_all<C: Client>(client: &C, change: &Change) -> Result<Read, HostError> {
    let of = &change.repository;
    client.access(of).await?;
    let Some(base) = client.tip(of, &change.base).await? else {
        let message = format!("{}: {of} has no branch {:?}: create it, or correct baseBranch", client.host(), change.base);
        return Err(HostError::new(Kind::BaseMissing, message));
    };
    let candidates = candidates(client, change, &base).await?;
    let files = edited(client, change, &Source { of, base: &base, packed: false }, candidates).await?;
    Ok(Read { base, files, packed: false })
}

fn new_branch<'c>(change: &'c Change, read: &'c Read) -> NewBranch<'c> {
    NewBranch {
        name: &change.head,
        base: &change.base,
        base_commit: &read.base,
        message: &change.message,
        files: &read.files,
        replace: false,
        packed: read.packed,
        begun: false,
    }
}

async fn open<C: Client>(client: &C, change: &Change) -> Result<Request, HostError> {
    let title = shortened(&change.title);
    let request = NewRequest { branch: &change.head, base: &change.base, title: &title, body: &change.body };
    client.open(&change.repository, request).await
}

fn shortened(title: &str) -> String {
    if title.chars().count() <= TITLE {
        return title.to_owned();
    }
    title.chars().take(TITLE - 1).chain(['…']).collect()
}

/// The source of the marked files.
struct Source<'a> {
    of: &'a Repository,
    /// The commit.
    base: &'a str,
    /// Whether the content comes from the archive, as far as it was kept.
    packed: bool,
}

impl Source<'_> {
    async fn file<C: Client>(&self, client: &C, candidate: &mut archive::Candidate) -> Result<Option<File>, HostError> {
        let packed = candidate.content.take().filter(|_| self.packed).map(File::packed);
        match packed {
            Some(file) => Ok(Some(file)),
            None => client.file(self.of, self.base, &candidate.path).await,
        }
    }
}

/// The files of a commit that contain the marker.
async fn candidates<C: Client>(client: &C, change: &Change, base: &str) -> Result<archive::Candidates, HostError> {
    let packed = client.archive(&change.repository, base).await?;
    let found = archive::candidates(client.host(), &packed.bytes, packed.folder, &change.marker)?;
    if found.files.len() > FILES {
        let (host, of, count) = (client.host(), &change.repository, found.files.len());
        let message = format!("{host}: {count} files of {of} have the marker, more than {FILES}");
        return Err(HostError::new(Kind::TooLarge, message));
    }
    Ok(found)
}

/// The changed files with their new content.
async fn edited<C: Client>(
    client: &C,
    change: &Change,
    source: &Source<'_>,
    candidates: archive::Candidates,
) -> Result<Vec<NewFile>, HostError> {
    let of = &change.repository;
    let archive::Candidates { files: candidates, mut notes, mut unusable } = candidates;
    let (mut files, mut marked) = (vec![], 0);
    for mut candidate in candidates {
        let read = source.file(client, &mut candidate).await?;
        let other = || {
            let (host, path) = (client.host(), &candidate.path);
            HostError::new(Kind::Nonsense, format!("{host}: {path} in {of} is not what the archive of the same commit has"))
        };
        // The marked files are only ever promoted together.
        let file = read.ok_or_else(other)?;
        let text = String::from_utf8(file.content).ok().filter(|text| text.len() as u64 <= archive::FILE);
        let Some(text) = text else {
            unusable.push(format!("{} is larger than is read, or not UTF-8", candidate.path));
            continue;
        };
        if !(text.contains(marker::SIGN) && text.contains(&change.marker)) {
            return Err(other());
        }
        let edit = marker::edit(&text, &change.marker, &change.version);
        marked += edit.marked;
        // The marker may also be the prefix of another environment's marker.
        let own = text.contains(&format!("\"{}\"", change.marker));
        let into = if own { &mut unusable } else { &mut notes };
        into.extend(edit.notes.into_iter().map(|note| format!("{}: {note}", candidate.path)));
        if let Some(content) = edit.text {
            files.push(NewFile { path: candidate.path, content, executable: candidate.executable, blob: file.blob });
        }
    }
    for note in &notes {
        tracing::info!(repository = %of, marker = change.marker, note, "a file was passed over");
    }
    if marked > 0 && !unusable.is_empty() {
        return Err(unedited(client.host(), change, &unusable));
    }
    notes.extend(unusable);
    if marked == 0 {
        let passed = if notes.is_empty() { String::new() } else { " Passed over:".to_owned() };
        let passed = notes.iter().take(NOTES).fold(passed, |all, note| format!("{all} {note}."));
        let message = format!(
            "{}: no YAML file on {} of {of} has a value with the comment # {{\"$promotion\": \"{}\"}}: add it beside the version.{passed}",
            client.host(),
            change.base,
            change.marker
        );
        return Err(HostError::new(Kind::NoMarker, message));
    }
    Ok(files)
}

/// The error about marked values that cannot be edited. Marked values are only ever promoted together.
fn unedited(host: &str, change: &Change, unusable: &[String]) -> HostError {
    let (of, marker) = (&change.repository, &change.marker);
    let named = unusable.iter().take(NOTES).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = unusable.len().saturating_sub(NOTES);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let message = format!(
        "{host}: not everything in {of} that is marked with {marker} can be changed: {named}{more}. Correct it, or take the marker away"
    );
    HostError::new(Kind::Unusable, message)
}

/// Whether the branch of an earlier attempt equals a new one: its commits start at the present base, and have the same files.
async fn is_as_wanted<C: Client>(client: &C, of: &Repository, tip: &str, new: &NewBranch<'_>) -> Result<bool, HostError> {
    let mut commit = tip.to_owned();
    // Bitbucket Server makes one commit for each file; the other hosts make one.
    let mut left = new.files.len();
    while commit != new.base_commit {
        if left == 0 {
            return Ok(false);
        }
        left -= 1;
        let parents = client.parents(of, &commit).await?;
        let [parent] = parents.as_slice() else { return Ok(false) };
        commit = parent.clone();
    }
    for file in new.files {
        let there = client.file(of, tip, &file.path).await?;
        if there.is_none_or(|there| there.content != file.content.as_bytes()) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
