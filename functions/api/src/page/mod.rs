//! The web page under `/ui/`, made from `web/` by `build/main.rs`. Its files are public; everything that they show comes from the
//! API.
//!
//! The page's own address is not cached for long, and names its files by a hash. The policy lets a browser run nothing but these
//! files, and talk to nobody but this API and the provider at which people sign in.

mod sign_in;

pub use sign_in::SignIn;

use crate::Api;
use crate::fence::Mounted;
use crate::fence::auth::hurried;
use crate::fence::client::Client;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// A file of the page: the joined modules, the style sheet or the icon.
#[derive(Debug, Clone, Copy)]
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// Its bytes.
    pub plain: &'static [u8],
    /// Its bytes, compressed with brotli, which every browser takes from https and from its own machine.
    pub packed: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));
const INDEX: &str = include_str!(concat!(env!("OUT_DIR"), "/index.html"));

/// Where the page is.
const AT: &str = "/ui/";

/// Answers requests for the page, and passes all others on.
pub(crate) async fn serve(State(api): State<Api>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let browser = wants(&request, ACCEPT, "text/html");
    if !reads || !(path == "/" && browser || path == "/ui" || path.starts_with(AT)) {
        return next.run(request).await;
    }
    let client = request.extensions().get::<Client>().map(|client| client.as_str().to_owned()).unwrap_or_default();
    if let Some(after) = api.paces().1.too_many(&client, api.access().now()) {
        return hurried("address", api.settings().paces.address, after).render(path);
    }
    let mut response = match path.strip_prefix(AT) {
        None => redirect(&request),
        Some("") => index(&request, &api.settings().sign_in),
        Some("settings.json") => settings(&api),
        Some(name) => file(&request, name),
    };
    let fixed = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    response.headers_mut().extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    tracing::info!(http.method = %request.method(), http.route = "page", http.status = response.status().as_u16(), "answered");
    match *request.method() {
        Method::HEAD => response.map(|_| Body::empty()),
        _ => response,
    }
}

fn redirect(request: &Request) -> Response {
    let before = request.extensions().get::<Mounted>().map(|Mounted(prefix)| prefix.as_str()).unwrap_or_default();
    (StatusCode::FOUND, [(LOCATION, format!("{before}{AT}"))]).into_response()
}

fn index(request: &Request, sign_in: &SignIn) -> Response {
    let tag = format!("\"{VERSION}\"");
    let headers = [
        (CONTENT_SECURITY_POLICY, policy(sign_in)),
        (CACHE_CONTROL, "no-cache".to_owned()),
        (ETAG, tag.clone()),
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
    ];
    if wants(request, IF_NONE_MATCH, &tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, INDEX).into_response()
}

/// What a browser lets the page do. lit-html makes the one policy of trusted types.
fn policy(sign_in: &SignIn) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'{}; img-src 'self' data:; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html",
        sign_in.origins().iter().map(|origin| format!(" {origin}")).collect::<String>()
    )
}

/// What the page has to know before anybody has signed in.
fn settings(api: &Api) -> Response {
    let (sign_in, known) = (&api.settings().sign_in, api.settings().identities.as_ref());
    let providers = sign_in.issuer().zip(known).map(|(issuer, known)| {
        let name = issuer.trim_start_matches("https://").trim_start_matches("http://").split('/').next().unwrap_or_default();
        let (client, scope) = (&known.audience, sign_in.scope());
        json!({"issuer": issuer, "name": name, "clientId": client, "scope": scope, "origins": sign_in.origins()})
    });
    let body = json!({"providers": Vec::from_iter(providers), "wrong": sign_in.wrong(), "version": VERSION});
    ([(CACHE_CONTROL, "no-cache")], axum::Json(body)).into_response()
}

fn file(request: &Request, name: &str) -> Response {
    // A page that was loaded before an update asks for files of the version before: it is told to load anew.
    let Some(file) = name.split_once('/').filter(|(version, _)| *version == VERSION).and_then(|(_, name)| found(name)) else {
        let why = "this file is not part of the page any more: load the page again";
        return (StatusCode::NOT_FOUND, [(CACHE_CONTROL, "no-store"), (CONTENT_TYPE, "text/plain; charset=utf-8")], why)
            .into_response();
    };
    let headers = [(CACHE_CONTROL, "public, max-age=31536000, immutable"), (CONTENT_TYPE, file.kind), (VARY, "accept-encoding")];
    match wants(request, ACCEPT_ENCODING, "br") {
        true => (headers, [(CONTENT_ENCODING, "br")], file.packed).into_response(),
        false => (headers, file.plain).into_response(),
    }
}

fn found(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

fn wants(request: &Request, header: HeaderName, what: &str) -> bool {
    request.headers().get_all(header).iter().any(|value| value.to_str().is_ok_and(|text| text.contains(what)))
}

#[cfg(test)]
#[path = "../../build/join.rs"]
mod join;

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    /// A reader on a slow line waits for this, once.
    #[test]
    fn the_page_is_small() {
        let (plain, packed) = FILES
            .iter()
            .fold((INDEX.len(), INDEX.len()), |(plain, packed), file| (plain + file.plain.len(), packed + file.packed.len()));
        assert!(plain <= 150_000 && packed <= 40_000, "{plain} bytes, {packed} compressed: at most 150,000 and 40,000");
    }

    #[test]
    fn modules_are_joined_in_the_order_in_which_they_need_each_other() {
        let modules = [
            ("app.js", "import { a as b } from \"./lib/a.js\";\nconst open = () => import(\"./c.js\");\nb(open);\n"),
            ("lib/a.js", "import{x as y}from\"../v.js\";/* whose */const z=y;export{z as a};"),
            ("c.js", "export { a } from \"./lib/a.js\";\nexport const open = 1;\nexport async function read() {}\n"),
            ("v.js", "const t=1;export{t as x,t as other};"),
        ];
        let modules = modules.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        let joined = join::join(&modules, "app.js").unwrap();
        let expected = [
            "const{x,other}=(()=>{const t=1;",
            "return{x:t,other:t}})();",
            "const{a}=(()=>{const y=x;",
            "/* whose */const z=y;",
            "return{a:z}})();",
            "const m2=(()=>{const open = 1;",
            "async function read() {}",
            "return{a,open,read}})();",
            "{const b=a;",
            "const open = () => Promise.resolve(m2);",
            "b(open);",
            "}",
        ];
        let lines: Vec<&str> = joined.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, expected);
        let circle = [("a.js", "import { b } from \"./b.js\";\n"), ("b.js", "import { a } from \"./a.js\";\n")];
        let circle = circle.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        assert!(join::join(&circle, "a.js").unwrap_err().contains("in a circle"));
        let both = [
            ("a.js", "import { x } from \"./b.js\";\nimport { y } from \"./c.js\";\n"),
            ("b.js", "export const x = 1;\n"),
            ("c.js", "export const x = 2;\nexport const y = 3;\n"),
        ];
        let both = both.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        assert_eq!(join::join(&both, "a.js").unwrap_err(), "c.js and b.js export x");
    }

    #[test]
    fn the_library_is_what_was_published() {
        let vendor = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/vendor");
        let sums = std::fs::read_to_string(format!("{vendor}/SHA256SUMS")).unwrap();
        assert_eq!(sums.lines().count(), 4);
        for line in sums.lines() {
            let (sum, name) = line.split_once("  ").unwrap();
            let text = std::fs::read(format!("{vendor}/{name}")).unwrap();
            let hash: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hash, sum, "{name}");
        }
    }

    /// What the policy forbids would fail in a browser only on the screen that does it.
    #[test]
    fn nothing_needs_what_the_policy_forbids() {
        let text = std::str::from_utf8(found("app.js").unwrap().plain).unwrap();
        {
            for forbidden in ["unsafeHTML", "eval(", "new Function", " style=\"", " onclick=", "localStorage", "document.cookie"] {
                assert!(!text.contains(forbidden), "{forbidden}");
            }
        }
    }
}
