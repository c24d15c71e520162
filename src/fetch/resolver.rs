//! Name look-up that lets only public addresses through.
//!
//! The check sits in the resolver itself: a name is looked up once for a connection, and the addresses that were
//! checked are the ones connected to. A check before the request would be of another answer.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::AddressRule;

/// Looks a name up.
#[async_trait]
pub trait Lookup: Send + Sync + 'static {
    /// Every address of `name`, in order of preference.
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The operating system's look-up.
#[derive(Debug, Clone, Copy)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// A name that has addresses, none of them public.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name leads to {0} only")]
pub struct Refused(String);

/// Resolver of the downloader's client.
pub struct GuardedResolver {
    lookup: Arc<dyn Lookup>,
    rule: AddressRule,
}

impl GuardedResolver {
    /// A resolver that keeps the addresses `rule` allows.
    pub fn new(lookup: Arc<dyn Lookup>, rule: AddressRule) -> Self {
        Self { lookup, rule }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, rule) = (self.lookup.clone(), self.rule.clone());
        Box::pin(async move {
            let found = lookup.lookup(name.as_str()).await?;
            let usable: Vec<_> = found.iter().copied().filter(|address| rule(*address).is_ok()).collect();
            match (usable.first(), found.first().map(|address| rule(*address))) {
                (None, Some(Err(why))) => Err(Refused(why.to_string()).into()),
                // Port 0 stands for the port of the URL.
                _ => Ok(Box::new(usable.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs),
            }
        })
    }
}
