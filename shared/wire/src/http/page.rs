//! Pages of lists. Keelway's lists have their entries in `items`, Keptn's under a name of their own; some have more beside them.

use keelway_domain::time::Timestamp;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// What is listed page by page. [`page!`] says it of an entry.
pub trait Listed {
    /// The page in the OpenAPI document.
    const PAGE: &'static str;
    /// What the page is, and where it is read.
    const ABOUT: &'static [&'static str];
    /// The member that has the entries. Only the lists of Keptn's API have names of their own for it.
    const MEMBER: &'static str = "items";
    /// The order of the entries, or what they are.
    const ENTRIES: &'static [&'static str];
    /// What `pageSize` counts.
    const SIZE: &'static str = "How many entries a page has at most.";
    /// Where a page begins.
    type Key: PageKey;
    /// What the page has beside its entries.
    type Extra: Default + Serialize + DeserializeOwned;
}

/// A text; or a number, in lists that Keptn has.
pub trait PageKey: Default + Serialize + DeserializeOwned + ToString {
    /// What the last page has for it.
    fn none() -> Self;

    /// Whether there is no further page.
    fn is_none(&self) -> bool;
}

impl PageKey for String {
    fn none() -> Self {
        "0".into()
    }
    fn is_none(&self) -> bool {
        self.is_empty() || self == "0"
    }
}

impl PageKey for i64 {
    fn none() -> Self {
        0
    }
    fn is_none(&self) -> bool {
        *self == 0
    }
}

/// A page of a list. `E` is how the entries are held: as `T`, or as JSON that is one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(serialize = "T: Listed, E: Serialize", deserialize = "T: Listed, E: DeserializeOwned"))]
pub struct Page<T: Listed, E = T> {
    /// The entries.
    #[serde(flatten, serialize_with = "write::<T, _, _>", deserialize_with = "read::<T, _, _>")]
    pub items: Vec<E>,
    /// Where the next page begins; `"0"`, or 0, on the last one.
    #[serde(default)]
    pub next_page_key: T::Key,
    /// How many entries a page has at most; some lists count something else.
    #[serde(default)]
    pub page_size: u64,
    /// How many entries this page has.
    #[serde(default)]
    pub total_count: u64,
    /// What it has beside its entries.
    #[serde(flatten)]
    pub extra: T::Extra,
}

impl<T: Listed, E> Page<T, E> {
    /// A page with at most `size` entries. `next`: where the next one begins.
    pub fn new(items: Vec<E>, size: impl Into<u64>, next: impl Into<Option<T::Key>>) -> Self {
        Self {
            total_count: items.len() as u64,
            items,
            next_page_key: next.into().unwrap_or_else(T::Key::none),
            page_size: size.into(),
            extra: T::Extra::default(),
        }
    }

    /// With what stands beside the entries.
    pub fn with(self, extra: T::Extra) -> Self {
        Self { extra, ..self }
    }
}

fn write<T: Listed, E: Serialize, S: Serializer>(items: &[E], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([(T::MEMBER, items)])
}

fn read<'de, T: Listed, E: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<E>, D::Error> {
    let mut members = Map::deserialize(deserializer)?;
    let items: Value = members.remove(T::MEMBER).ok_or_else(|| D::Error::missing_field(T::MEMBER))?;
    serde_json::from_value(items).map_err(D::Error::custom)
}

/// Nothing beside the entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Nothing {}

/// When the page was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Clock {
    /// The server's clock: what all times of the answer are compared with, RFC 3339.
    pub now: String,
}

impl Clock {
    /// At this time.
    pub fn at(now: Timestamp) -> Self {
        Self { now: now.rfc3339() }
    }
}

/// Says of what a page consists: its name and what it is; then the entries, and in lists of Keptn's API the member that has them.
/// `by i64`: its keys are numbers. `and Clock`: it has something beside the entries. `sized …`: what `pageSize` counts if not the
/// entries.
macro_rules! page {
    (
        $(#[doc = $about:literal])+
        $page:ident of $entry:ty $(, by $key:ty)? $(, and $extra:ty)? $(, sized $size:literal)?;
        $(#[doc = $entries:literal])+
        $($member:literal)?
    ) => {
        $(#[doc = $about])+
        pub type $page = $crate::http::Page<$entry>;

        impl $crate::http::Listed for $entry {
            const PAGE: &'static str = stringify!($page);
            const ABOUT: &'static [&'static str] = &[$($about),+];
            $(const MEMBER: &'static str = $member;)?
            const ENTRIES: &'static [&'static str] = &[$($entries),+];
            $(const SIZE: &'static str = $size;)?
            type Key = $crate::http::page::or!($($key)?, String);
            type Extra = $crate::http::page::or!($($extra)?, $crate::http::page::Nothing);
        }
    };
}

/// The first of two types that is there.
macro_rules! or {
    (, $other:ty) => {
        $other
    };
    ($one:ty, $other:ty) => {
        $one
    };
}

pub(crate) use {or, page};

#[cfg(feature = "openapi")]
mod described {
    use super::{Listed, Page, PageKey};
    use serde::Serialize;
    use std::borrow::Cow;
    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{Array, Object, Ref, Schema, SchemaType};
    use utoipa::{PartialSchema, ToSchema};

    type Schemas = Vec<(String, RefOr<Schema>)>;

    fn text(lines: &[&str]) -> String {
        lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n")
    }

    fn described<T: PartialSchema>(text: &str) -> RefOr<Schema> {
        let mut schema = T::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.description = Some(text.into());
        }
        schema
    }

    /// JSON of any form has no schema of its own.
    fn is_any(schema: &RefOr<Schema>) -> bool {
        matches!(schema, RefOr::T(Schema::Object(object)) if object.schema_type == SchemaType::AnyValue)
    }

    impl<T, E> PartialSchema for Page<T, E>
    where
        T: Listed<Key: ToSchema, Extra: ToSchema> + ToSchema + Default + Serialize,
    {
        fn schema() -> RefOr<Schema> {
            let entry = T::schema();
            let entry = if is_any(&entry) { entry } else { RefOr::Ref(Ref::from_schema_name(T::name())) };
            let entries = Array::builder().items(entry).description(Some(text(T::ENTRIES)));
            let last = serde_json::to_string(&T::Key::none()).unwrap_or_default();
            let next = format!("Where the next page begins; `{last}` on the last one.");
            let page = Object::builder()
                .description(Some(text(T::ABOUT)))
                .property(T::MEMBER, entries)
                .property("nextPageKey", described::<T::Key>(&next))
                .property("pageSize", described::<u64>(T::SIZE))
                .property("totalCount", described::<u64>("How many entries this page has."))
                .default(serde_json::to_value(Page::<T>::default()).ok());
            let mut page = page.build();
            if let RefOr::T(Schema::Object(extra)) = T::Extra::schema() {
                page.properties.extend(extra.properties);
            }
            page.into()
        }
    }

    impl<T, E> ToSchema for Page<T, E>
    where
        T: Listed<Key: ToSchema, Extra: ToSchema> + ToSchema + Default + Serialize,
    {
        fn name() -> Cow<'static, str> {
            T::PAGE.into()
        }
        fn schemas(schemas: &mut Schemas) {
            let entry = T::schema();
            if !is_any(&entry) {
                schemas.push((T::name().into(), entry));
            }
            T::schemas(schemas);
            T::Extra::schemas(schemas);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;
    use crate::http::access::{TokenPage, TokenState};
    use crate::http::keptn::LogPage;
    use crate::http::{EnvironmentState, EventPage, News, Page, PageKey};
    use serde_json::{Value, json};

    #[test]
    fn entries_stand_in_items_except_in_keptns_lists() {
        let token = TokenState { name: "ci".into(), ..TokenState::default() };
        let page = TokenPage::new(vec![token.clone()], 20_u16, Some("ci".to_owned()));
        let written = serde_json::to_value(&page).unwrap();
        let members: Vec<&String> = written.as_object().unwrap().keys().collect();
        assert_eq!(members, ["items", "nextPageKey", "pageSize", "totalCount"]);
        assert_eq!((&written["items"][0]["name"], &written["nextPageKey"]), (&json!("ci"), &json!("ci")));
        assert_eq!(serde_json::from_value::<TokenPage>(written).unwrap(), page);
    }

    #[test]
    fn the_last_page_says_so_in_the_form_of_its_key() {
        let last = serde_json::to_value(TokenPage::new(vec![], 20_u16, None)).unwrap();
        assert_eq!(last, json!({"items": [], "nextPageKey": "0", "pageSize": 20, "totalCount": 0}));
        let last = serde_json::to_value(LogPage::new(vec![], 20_u16, None)).unwrap();
        assert_eq!(last, json!({"logs": [], "nextPageKey": 0, "pageSize": 20, "totalCount": 0}));
        assert!(
            "0".to_owned().is_none() && String::new().is_none() && !"carts".to_owned().is_none() && 0.is_none() && !7.is_none()
        );
    }

    #[test]
    fn what_stands_beside_the_entries_is_written_beside_them() {
        let clock = Clock { now: "2026-11-20T12:00:00.000Z".into() };
        let page = Page::<EnvironmentState, Value>::new(vec![json!({"any": "thing"})], 1_u16, None).with(clock);
        let written = json!({"items": [{"any": "thing"}], "nextPageKey": "0", "pageSize": 1, "totalCount": 1,
            "now": "2026-11-20T12:00:00.000Z"});
        assert_eq!(serde_json::to_value(&page).unwrap(), written);
        let news = EventPage::new(vec![json!(1)], 1_u16, None).with(News { now: "now".into(), fingerprint: Some("f".into()) });
        assert_eq!(serde_json::from_value::<EventPage>(serde_json::to_value(&news).unwrap()).unwrap(), news);
    }

    #[test]
    fn pages_are_read_leniently() {
        assert_eq!(serde_json::from_value::<TokenPage>(json!({"items": []})).unwrap(), TokenPage::default());
        let page: TokenPage = serde_json::from_value(json!({"items": [{"further": 1}], "further": {"items": 2}})).unwrap();
        assert_eq!((page.items.len(), page.next_page_key.as_str()), (1, ""));
        assert!(serde_json::from_value::<TokenPage>(json!({"items": "none"})).is_err());
        // A version of the API that calls them something else has not said that there are none.
        let other = serde_json::from_value::<TokenPage>(json!({"tokens": []})).unwrap_err();
        assert_eq!(other.to_string(), "missing field `items`");
    }
}
