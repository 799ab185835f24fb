//! Parses names and ARNs by the rules of AWS.

/// A resource's name, region and account.
pub struct Named {
    pub name: String,
    pub region: Option<String>,
    pub account: Option<String>,
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn is_account(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text looks like a region, such as `eu-west-1` or `us-gov-east-1`.
fn is_region(text: &str) -> bool {
    let letters = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
    match text.split('-').collect::<Vec<_>>()[..] {
        [land, ref middle @ .., number] if matches!(middle.len(), 1 | 2) => {
            land.len() == 2 && letters(land) && middle.iter().all(|part| letters(part)) && number.len() == 1 && is_account(number)
        }
        _ => false,
    }
}

/// Whether at most one part follows the name: a version, an alias or a revision.
fn is_rest(rest: &[&str]) -> bool {
    match rest {
        [] => true,
        [one] => is_name(one.strip_prefix('$').unwrap_or(one)),
        _ => false,
    }
}

fn found(name: &str, region: Option<&str>, account: Option<&str>) -> Option<Named> {
    let sound = is_name(name) && region.is_none_or(is_region) && account.is_none_or(is_account);
    sound.then(|| Named { name: name.to_owned(), region: region.map(str::to_owned), account: account.map(str::to_owned) })
}

/// A Lambda function, by its name or its ARN.
pub fn function(text: &str) -> Option<Named> {
    match text.split(':').collect::<Vec<_>>()[..] {
        ["arn", _, "lambda", region, account, "function", name, ref rest @ ..] if is_rest(rest) => {
            found(name, Some(region), Some(account))
        }
        [account, "function", name, ref rest @ ..] if is_rest(rest) => found(name, None, Some(account)),
        [account, name] if account.len() == 12 && is_account(account) => found(name, None, Some(account)),
        // AWS also accepts a region or the word `function` before the name, and a function's name may look like either.
        [name, _] if name == "function" || is_region(name) => None,
        [name, ref rest @ ..] if is_rest(rest) => found(name, None, None),
        _ => None,
    }
}

/// A resource whose ARN ends in `<type>/<name>`, as in CodeBuild and ECS.
pub fn named(text: &str, service: &str, ty: &str) -> Option<Named> {
    match text.split(':').collect::<Vec<_>>()[..] {
        ["arn", _, of, region, account, resource, ref rest @ ..] if of == service && is_rest(rest) => {
            let (found_type, name) = resource.split_once('/')?;
            if found_type == ty { found(name, Some(region), Some(account)) } else { None }
        }
        [name, ref rest @ ..] if name != "arn" && is_rest(rest) => found(name, None, None),
        _ => None,
    }
}

/// A role, by its ARN. Its name has its path in front, as in the ARN.
pub fn role(text: &str) -> Option<Named> {
    let ["arn", partition, "iam", "", account, resource] = text.split(':').collect::<Vec<_>>()[..] else { return None };
    let name = resource.strip_prefix("role/")?;
    let letter = |c: char| c.is_ascii_alphanumeric() || "+=,.@_-".contains(c);
    let sound = is_name(partition) && account.len() == 12 && is_account(account) && name.len() <= 512;
    let named = name.split('/').all(|part| !part.is_empty() && ![".", ".."].contains(&part) && part.chars().all(letter));
    (sound && named).then(|| Named { name: name.to_owned(), region: None, account: Some(account.to_owned()) })
}
