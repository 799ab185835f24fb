//! Where the definitions of a kind are kept.

use crate::fence::problem::Answer;
use crate::ports::AnyPorts;
use keelway_domain::address::Address;
use keelway_domain::border::Vouched;
use keelway_domain::names::ProjectName;
use keelway_engine::protocol::declare::{self, Declarations, Declared, Outcome};
use std::future::Future;

/// A page of definitions, and after which one the next page begins.
pub type Page<T> = (Vec<(Address, Declared<T>)>, Option<String>);

/// The definitions of a kind.
pub trait Kept: Send + Sync {
    /// The content of a definition.
    type Spec;

    /// One in force.
    fn get(&self, at: &Address) -> impl Future<Output = Answer<Option<Declared<Self::Spec>>>> + Send;
    /// At most `limit` of a namespace, those after a name, by name.
    fn page(&self, namespace: &str, after: Option<&str>, limit: u32) -> impl Future<Output = Answer<Page<Self::Spec>>> + Send;
    /// The names on such a page, also of definitions that cannot be read.
    fn names(
        &self,
        namespace: &str,
        after: Option<&str>,
        limit: u32,
    ) -> impl Future<Output = Answer<(Vec<String>, Option<String>)>> + Send;
    /// The same page of all namespaces, or of those `among` them; `<namespace>/<name>` tells where a page ended. Empty for what is
    /// listed for each namespace alone.
    fn everywhere(
        &self,
        _among: Option<&[ProjectName]>,
        _after: Option<&str>,
        _limit: u32,
    ) -> impl Future<Output = Answer<Page<Self::Spec>>> + Send {
        async { Ok((vec![], None)) }
    }
    /// Whether one is not too large.
    fn fits(&self, at: &Address, spec: &Self::Spec, source: &str) -> bool;
    /// Puts one in force.
    fn put(&self, at: &Address, spec: &Self::Spec, source: &str, by: &str) -> impl Future<Output = Answer<Outcome>> + Send;
    /// Deletes one. `false`: there is none.
    fn delete(&self, at: &Address) -> impl Future<Output = Answer<bool>> + Send;
}

impl<K: declare::Kind<Spec: Vouched> + Send> Kept for Declarations<'_, AnyPorts, K> {
    type Spec = K::Spec;

    async fn get(&self, at: &Address) -> Answer<Option<Declared<K::Spec>>> {
        Ok(self.get(at).await?)
    }

    async fn page(&self, namespace: &str, after: Option<&str>, limit: u32) -> Answer<Page<K::Spec>> {
        Ok(self.page(namespace, after, limit).await?)
    }

    async fn names(&self, namespace: &str, after: Option<&str>, limit: u32) -> Answer<(Vec<String>, Option<String>)> {
        Ok(self.names(namespace, after, limit).await?)
    }

    async fn everywhere(&self, among: Option<&[ProjectName]>, after: Option<&str>, limit: u32) -> Answer<Page<K::Spec>> {
        Ok(self.everywhere(among, after, limit).await?)
    }

    fn fits(&self, at: &Address, spec: &K::Spec, source: &str) -> bool {
        self.fits(at, spec, source)
    }

    async fn put(&self, at: &Address, spec: &K::Spec, source: &str, _: &str) -> Answer<Outcome> {
        Ok(self.apply(at, spec, source).await?)
    }

    async fn delete(&self, at: &Address) -> Answer<bool> {
        Ok(self.delete(at).await?)
    }
}
