//! `summary.json`: the answer for machines. Its form is a promise, described in docs/run-directory.md.

mod graph;

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vti::stats::Estimate;

pub(crate) use graph::{
    BaselineSummary, BetterWord, CpdagSummary, DagFound, Edge, EdgesSummary, GraphSummary, MetricSummary, NamedEdge,
    TruthSummary,
};

/// A map that keeps its order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ordered<T>(pub(crate) Vec<(String, T)>);

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Ordered<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// Everything a run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) version: String,
    pub(crate) data: DataSummary,
    pub(crate) verdict: VerdictSummary,
    pub(crate) elbo: Bound,
    pub(crate) log_evidence: Evidence,
    /// What `corrected` means: by importance weights, of whole draws or factor by factor, by annealing, or by chains.
    pub(crate) correction: Method,
    #[serde(flatten)]
    pub(crate) found: Found,
    /// Most probable first.
    pub(crate) models: Vec<ModelSummary>,
    /// Where the exact answer is known.
    pub(crate) exact: Option<ExactSummary>,
    /// Where chains were run.
    pub(crate) chains: Option<ChainsSummary>,
    pub(crate) replicates: Vec<ReplicateSummary>,
    pub(crate) steps: u64,
    pub(crate) stop: String,
    pub(crate) seconds: Seconds,
    pub(crate) device: String,
    pub(crate) precision: String,
    pub(crate) threads: usize,
    pub(crate) seed: u64,
    pub(crate) warnings: Vec<String>,
}

/// What the question's own answer is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Found {
    Select(SelectFound),
    Dag(Box<DagFound>),
}

/// Which covariates matter, and how much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SelectFound {
    pub(crate) highest_probability_model: String,
    pub(crate) median_probability_model: String,
    pub(crate) inclusion: Ordered<Inclusion>,
    pub(crate) coefficients: Ordered<Coefficient>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DataSummary {
    pub(crate) path: String,
    pub(crate) fingerprint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<String>,
    pub(crate) rows: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) terms: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nodes: Option<usize>,
    /// How columns were scaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scale: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct VerdictSummary {
    pub(crate) kind: VerdictWord,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VerdictWord {
    Trust,
    Corrected,
    DoNotTrust,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    Weights,
    /// Importance weights of each factor of the density on its own.
    Factors,
    /// Evidences of factors from the prior, by annealed particles.
    Annealed,
    Chains,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bound {
    pub(crate) mean: f64,
    pub(crate) se: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Evidence {
    pub(crate) estimate: f64,
    pub(crate) se: f64,
    /// None where it is unknown, or where all weights are equal.
    pub(crate) khat: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Inclusion {
    pub(crate) q: f64,
    pub(crate) corrected: f64,
    pub(crate) se: f64,
    pub(crate) exact: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Coefficient {
    /// Mean over all models under q.
    pub(crate) q: f64,
    /// Mean over all models, corrected.
    pub(crate) corrected: f64,
    /// Standard error of `corrected`.
    pub(crate) se: f64,
    /// Standard deviation over all models, corrected.
    pub(crate) sd: f64,
    /// Central 95 % interval over all models, corrected.
    pub(crate) interval: [f64; 2],
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelSummary {
    pub(crate) word: String,
    pub(crate) label: String,
    pub(crate) size: usize,
    pub(crate) q: f64,
    pub(crate) corrected: f64,
    pub(crate) se: f64,
    pub(crate) exact: Option<f64>,
    pub(crate) log_evidence: Option<Estimate>,
    pub(crate) khat: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExactSummary {
    pub(crate) log_evidence: f64,
    /// Half the sum of the differences between model probabilities.
    pub(crate) total_variation: Distances,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Distances {
    pub(crate) q: f64,
    pub(crate) corrected: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChainsSummary {
    /// None for chains that stand still in different places.
    pub(crate) rhat: Option<f64>,
    pub(crate) effective: f64,
    pub(crate) accepted_jumps: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReplicateSummary {
    pub(crate) seed: u64,
    /// None where it failed.
    pub(crate) elbo: Option<Estimate>,
    pub(crate) ending: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seconds {
    pub(crate) train: f64,
    pub(crate) check: f64,
}

impl Summary {
    pub(crate) fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}
