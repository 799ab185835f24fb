//! What metrics say of two versions that share the requests of an alias.

use super::Evaluations;
use super::asking::Asking;
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports};
use keelway_domain::deployments::analysis::{Analysis, STEP, Seen, Spread};
use keelway_domain::evaluation::{Measured, Objectives, Period, Place, Slo};
use keelway_domain::evaluations::{Found, Lost};
use keelway_domain::names::ProjectName;
use keelway_domain::time::Timestamp;

/// The versions of an alias: the new one, and the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// The target whose alias it is.
    pub target: String,
    /// The function.
    pub function: String,
    /// The alias.
    pub alias: String,
    /// The new version.
    pub version: String,
    /// The version before.
    pub before: String,
}

/// A window in which versions are looked at.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// The project.
    pub namespace: &'a str,
    /// How they are judged.
    pub analysis: &'a Analysis,
    /// The commit of the project's files. `None`: there is none.
    pub commit: Option<&'a str>,
    /// When the new version got its share.
    pub since: Timestamp,
    /// Its beginning.
    pub from: Timestamp,
    /// Its end, or later: what is known by now is looked at.
    pub until: Timestamp,
}

/// What a window shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// Its metrics are not there before this time.
    NotBefore(Timestamp),
    /// Nothing, for this reason. `hopeless`: nor will a longer one, because something is wrong.
    Nothing {
        /// The window.
        period: Period,
        /// The reason.
        why: String,
        /// See above.
        hopeless: bool,
    },
    /// What was measured.
    Measured {
        /// The objectives.
        slo: Box<Slo>,
        /// The window.
        period: Period,
        /// By target.
        seen: Vec<Seen>,
    },
}

impl<P: Ports, M: Metrics> Evaluations<P, M> {
    /// The present commit of a project's files.
    ///
    /// # Errors
    /// A port fails.
    pub async fn commit_of(&self, namespace: &str) -> Result<Option<String>, PortError> {
        let Ok(project) = ProjectName::new(namespace) else { return Ok(None) };
        // Without one, the files say why they cannot be read.
        Ok(self.pinned(&project, None).await?.unwrap_or_default())
    }

    /// Looks at versions in a window. Nothing is written.
    ///
    /// # Errors
    /// A port fails. That a source fails is an answer.
    pub async fn look_at(&self, window: &Window<'_>, versions: &[Versions]) -> Result<Shown, PortError> {
        let Window { namespace, analysis, commit, since, from, until } = *window;
        let (stage, service) = analysis.place.clone().unwrap_or_default();
        let place = [namespace.to_owned(), stage, service];
        let files = self.files(&place, commit);
        let period = Period { start: from, end: until };
        let nothing = |why: String, hopeless| Ok(Shown::Nothing { period, why, hopeless });
        let name = match &analysis.source {
            Some(name) => name.clone(),
            None => match self.found(namespace).await? {
                Found::Source(name, _) | Found::Service(name) => name,
                Found::Nothing => {
                    let why =
                        format!("project {namespace} has no MetricsSource, or several: apply one, or name it in `analysis.source`");
                    return nothing(why, true);
                }
            },
        };
        let slo = match files.objectives_in(&analysis.slo).await?.0 {
            Objectives::Read(slo) => slo,
            Objectives::Unreadable(why) => return nothing(why, true),
            Objectives::Missing => {
                let slo = &analysis.slo;
                return nothing(format!("there is no {slo}: add it to the resources, as `keelway resource add` does"), true);
            }
        };
        let asking = match self.asking(&files, (namespace, &name)).await? {
            Ok(asking) => asking,
            Err(why) => return nothing(why, true),
        };
        let delay = asking.source.delay();
        if self.ports.now() < until + delay {
            return Ok(Shown::NotBefore(until + delay));
        }
        // Whatever came in since belongs to this window, too: it was late, or the deployment was paused.
        let period = Period { start: from, end: until.max(self.ports.now() - delay) };
        let mut seen = vec![];
        for of in versions {
            let looked = match look(&asking, (&slo, analysis, of), &place, period).await? {
                Ok(one) => {
                    let since = Period { start: since, ..period };
                    spreads(&asking, (&slo, analysis, of), &place, since).await?.map(|spreads| Seen { spreads, ..one })
                }
                Err(lost) => Err(lost),
            };
            match looked {
                Ok(one) => seen.push(one),
                Err(Lost::Later(why)) => return Ok(Shown::Nothing { period, why, hopeless: false }),
                Err(Lost::Refused(why)) => return Ok(Shown::Nothing { period, why, hopeless: true }),
            }
        }
        Ok(Shown::Measured { slo: Box::new(slo), period, seen })
    }
}

/// What is asked about one target: the new version, and the one before if something is compared.
async fn look<M: Metrics>(
    asking: &Asking<'_, M>,
    (slo, analysis, of): (&Slo, &Analysis, &Versions),
    place: &[String; 3],
    period: Period,
) -> Result<Result<Seen, Lost>, PortError> {
    let counted = (analysis.min_samples > 0).then_some(analysis.samples.as_str());
    let version = async |version: &str| {
        let place = named(place, slo, of, version, period);
        let indicators = counted.into_iter().chain(slo.indicators());
        let values = asking.values(indicators, &place, period).await?;
        Ok(values.map(|mut values| {
            let samples: Option<Measured> = counted.map(|_| values.remove(0));
            (samples, values)
        }))
    };
    let (samples, canary) = match version(&of.version).await? {
        Ok(values) => values,
        Err(lost) => return Ok(Err(lost)),
    };
    // Values over time are compared with those of the version before, too.
    let (baseline_samples, baseline) = match slo.compares() || !analysis.mann_whitney.is_empty() {
        false => (None, vec![]),
        true => match version(&of.before).await? {
            Ok(values) => values,
            Err(lost) => return Ok(Err(lost)),
        },
    };
    Ok(Ok(Seen { target: of.target.clone(), samples, baseline_samples, canary, baseline, spreads: vec![] }))
}

/// The values over time that are compared.
async fn spreads<M: Metrics>(
    asking: &Asking<'_, M>,
    (slo, analysis, of): (&Slo, &Analysis, &Versions),
    place: &[String; 3],
    period: Period,
) -> Result<Result<Vec<Spread>, Lost>, PortError> {
    if analysis.mann_whitney.is_empty() {
        return Ok(Ok(vec![]));
    }
    let indicators: Vec<&str> = analysis.mann_whitney.iter().map(|one| one.sli.as_str()).collect();
    let one = Period { end: period.start + STEP, ..period };
    let version = async |version: &str| asking.series(&indicators, &named(place, slo, of, version, one), (period, STEP)).await;
    let (canary, baseline) = match (version(&of.version).await?, version(&of.before).await?) {
        (Ok(canary), Ok(baseline)) => (canary, baseline),
        (Err(lost), _) | (_, Err(lost)) => return Ok(Err(lost)),
    };
    let pairs = canary.into_iter().zip(baseline).map(|(canary, baseline)| Spread { canary, baseline });
    Ok(Ok(pairs.collect()))
}

/// What queries may name.
fn named([project, stage, service]: &[String; 3], slo: &Slo, of: &Versions, version: &str, period: Period) -> Place {
    Place {
        project: project.clone(),
        stage: stage.clone(),
        service: service.clone(),
        function: Some(of.function.clone()),
        alias: Some(of.alias.clone()),
        version: Some(version.to_owned()),
        filter: slo.filter.clone(),
        milliseconds: (period.end - period.start).0,
        ..Place::default()
    }
}
