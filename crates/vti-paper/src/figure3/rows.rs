//! Which runs there are, and means over their data sets.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use vti::graph::metrics::{Convention, conventions};

use super::settings::Settings;
use crate::graphs::{self, Finished, Method, Scored};
use crate::results::moments;
use crate::text::{self, cell};

/// What is run on a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Run {
    /// Answers that use no data.
    Trivial,
    Vti,
    /// The paper's family.
    Joint,
    Dagma,
    /// And DiBS+.
    Dibs,
}

/// Which run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) data_set: usize,
    pub(super) rows: usize,
    pub(super) run: Run,
}

impl graphs::Case for Case {
    fn name(&self) -> String {
        let run = match self.run {
            Run::Trivial => "trivial answers",
            Run::Vti => "VTI",
            Run::Joint => "VTI with the paper's family",
            Run::Dagma => "DAGMA",
            Run::Dibs => "DiBS",
        };
        format!("{} rows, data set {}, {run}", self.rows, self.data_set)
    }
}

/// In the order of tables and legends.
pub(super) const METHODS: [Method; 10] = [
    Method::Vti,
    Method::VtiCorrected,
    Method::VtiJoint,
    Method::DagmaBestF1,
    Method::DagmaEdgeCount,
    Method::Dibs,
    Method::DibsPlus,
    Method::EmptyGraph,
    Method::Prior,
    Method::RandomOrder,
];

/// The data sets of one size as one method has them.
pub(super) struct Means<'a> {
    pub(super) rows: usize,
    pub(super) method: Method,
    own: Vec<(&'a Finished<Case>, &'a Scored)>,
}

/// A mean and its standard error over data sets; none of one data set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mean {
    pub(super) value: f64,
    pub(super) se: Option<f64>,
}

impl Means<'_> {
    pub(super) fn data_sets(&self) -> usize {
        self.own.len()
    }

    /// The mean of a score; none where it has no meaning.
    pub(super) fn of(&self, convention: &Convention) -> Option<Mean> {
        let values = self.own.iter().map(|(_, scored)| (convention.value)(scored.scores.first()?));
        mean(&values.collect::<Option<Vec<f64>>>()?)
    }

    pub(super) fn seconds(&self) -> Option<Mean> {
        mean(&self.own.iter().map(|(fit, _)| fit.seconds).collect::<Vec<f64>>())
    }

    pub(super) fn edges(&self) -> Option<Mean> {
        mean(&self.own.iter().map(|(_, scored)| scored.edges).collect::<Option<Vec<f64>>>()?)
    }
}

fn mean(values: &[f64]) -> Option<Mean> {
    let (value, sd) = moments(values);
    let se = (values.len() > 1).then(|| sd / (values.len() as f64).sqrt());
    (!values.is_empty()).then_some(Mean { value, se })
}

/// All sizes and methods of which there is something.
pub(super) fn means<'a>(fits: &'a [Finished<Case>], settings: &Settings) -> Vec<Means<'a>> {
    let mut found = Vec::new();
    for &rows in &settings.rows {
        for method in METHODS {
            let fits = fits.iter().filter(|fit| fit.case.rows == rows);
            let own = fits.flat_map(|fit| fit.answers.iter().map(move |scored| (fit, scored)));
            let own: Vec<_> = own.filter(|(_, scored)| scored.method == method).collect();
            if !own.is_empty() {
                found.push(Means { rows, method, own });
            }
        }
    }
    found
}

/// The means as a table, with all conventions.
pub(super) fn means_table(means: &[Means<'_>]) -> Result<String> {
    let first = ["rows", "method", "data_sets", "seconds", "expected_edges"].map(String::from);
    let names = conventions().iter().flat_map(|convention| [convention.name.into(), format!("{}_se", convention.name)]);
    let row = |means: &Means<'_>| {
        let value = |mean: Option<Mean>| cell(mean.map(|mean| mean.value));
        let pair = |convention: &Convention| {
            let mean = means.of(convention);
            [value(mean), cell(mean.and_then(|mean| mean.se))]
        };
        let sizes = [means.rows.to_string(), means.method.to_string(), means.data_sets().to_string()];
        let cells = sizes.into_iter().chain([value(means.seconds()), value(means.edges())]);
        cells.chain(conventions().iter().flat_map(pair)).collect()
    };
    text::table(first.into_iter().chain(names), means.iter().map(row))
}
