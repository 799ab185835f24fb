//! Merges the data of an event into the payload of the earlier events. As in Keptn, except that a later scalar always replaces an
//! earlier one.

use crate::event::Object;
use serde_json::Value;

/// The most entries of a merged list. The newest come first.
pub const MAX_LIST: usize = 1000;

/// Merges `later` into `earlier`, and returns the paths of lists that were cut at [`MAX_LIST`].
///
/// Objects are merged member by member. A list becomes the new entries followed by the old ones, unless both are equal. A later
/// `null` empties a string, and leaves objects and lists unchanged. Everything else is replaced by the later value.
pub fn merge(earlier: &mut Object, later: &Object) -> Vec<String> {
    let mut cut = Vec::new();
    merge_objects(earlier, later, "", &mut cut);
    cut
}

fn merge_objects(earlier: &mut Object, later: &Object, path: &str, cut: &mut Vec<String>) {
    for (name, value) in later {
        match earlier.get_mut(name) {
            Some(present) => merge_values(present, value, &format!("{path}{name}"), cut),
            None => {
                earlier.insert(name.clone(), value.clone());
            }
        }
    }
}

fn merge_values(present: &mut Value, value: &Value, path: &str, cut: &mut Vec<String>) {
    match (&mut *present, value) {
        (Value::Object(earlier), Value::Object(later)) => merge_objects(earlier, later, &format!("{path}."), cut),
        (Value::Array(earlier), Value::Array(later)) => {
            if earlier != later {
                let mut list = later.clone();
                list.append(earlier);
                if list.len() > MAX_LIST {
                    list.truncate(MAX_LIST);
                    cut.push(path.to_owned());
                }
                *earlier = list;
            }
        }
        (Value::String(text), Value::Null) => text.clear(),
        (Value::Object(_) | Value::Array(_), Value::Null) => {}
        (_, later) => *present = later.clone(),
    }
}

/// The largest member of an object and its size in bytes, for the message about a payload that is too large.
pub fn largest_member(object: &Object) -> Option<(&str, usize)> {
    object.iter().map(|(name, value)| (name.as_str(), value.to_string().len())).max_by_key(|(_, size)| *size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_merge_table() {
        for (earlier, later, merged) in [
            (json!({"foo": "bar"}), json!({"bar": "foo"}), json!({"foo": "bar", "bar": "foo"})),
            (json!({"foo": "bar"}), json!({"foo": "foo"}), json!({"foo": "foo"})),
            (json!({"l": [1, 2]}), json!({"l": [3]}), json!({"l": [3, 1, 2]})),
            (json!({"l": [1, 2]}), json!({"l": [1, 2]}), json!({"l": [1, 2]})),
            (json!({"x": {"a": 1}}), json!({"x": "s"}), json!({"x": "s"})),
            (json!({"x": [1]}), json!({"x": "s"}), json!({"x": "s"})),
            (json!({"x": "s"}), json!({"x": [1]}), json!({"x": [1]})),
            (json!({"x": null}), json!({"x": {"a": 1}}), json!({"x": {"a": 1}})),
            (json!({"x": null}), json!({"x": "s"}), json!({"x": "s"})),
            (json!({"x": {"a": 1}}), json!({"x": null}), json!({"x": {"a": 1}})),
            (json!({"x": [1]}), json!({"x": null}), json!({"x": [1]})),
            (json!({"x": "s"}), json!({"x": null}), json!({"x": ""})),
            (json!({"n": 1, "b": false}), json!({"n": 2, "b": true}), json!({"n": 2, "b": true})),
            (json!({"x": {"a": {"b": 1}}}), json!({"x": {"a": {"c": 2}}}), json!({"x": {"a": {"b": 1, "c": 2}}})),
        ] {
            let mut result = earlier.as_object().unwrap().clone();
            merge(&mut result, later.as_object().unwrap());
            assert_eq!(Value::Object(result), merged, "{earlier} + {later}");
        }
    }

    #[test]
    fn a_merged_list_is_bounded_and_says_so() {
        let mut earlier = json!({"a": {"l": vec![0; 900]}}).as_object().unwrap().clone();
        let later = json!({"a": {"l": vec![1; 200]}}).as_object().unwrap().clone();
        assert_eq!(merge(&mut earlier, &later), ["a.l"]);
        let list = earlier["a"]["l"].as_array().unwrap();
        assert_eq!((list.len(), &list[0], &list[999]), (1000, &json!(1), &json!(0)));
    }

    #[test]
    fn a_list_is_cut_only_if_it_grows_beyond_the_most() {
        let list = |n: usize| json!({"l": vec![1; n]}).as_object().unwrap().clone();
        for (later, cut) in [(1, vec![]), (2, vec!["l".to_owned()])] {
            let mut base = json!({"l": vec![0; MAX_LIST - 1]}).as_object().unwrap().clone();
            assert_eq!(merge(&mut base, &list(later)), cut);
            assert_eq!(base["l"].as_array().unwrap().len(), MAX_LIST);
        }
    }
}
