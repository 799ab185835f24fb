//! Pages for people: the pull requests of a repository, and one of them.

use crate::http::{Answer, Request};
use crate::refused::Refused;
use crate::store::Store;

pub(crate) fn answer(store: &mut Store, request: &Request, path: &[String]) -> Result<Option<Answer>, Refused> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match (request.method.as_str(), path.as_slice()) {
        ("GET", [""]) => {
            let names: Vec<_> = store.all().map(|repository| format!("{}\n", repository.full_name())).collect();
            Ok(Some(Answer::text(200, "text/plain; charset=utf-8", names.concat())))
        }
        _ => Ok(None),
    }
}
