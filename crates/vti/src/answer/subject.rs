//! What an answer is about.

use super::{AnswerError, Counting, DataFacts, Exact, LeftOut, Units};
use crate::graph::{Graph, ordered_pairs};
use crate::problem::Problem;
use crate::problem::dag::{Dag, Sem};
use crate::problem::selection::Selection;
use crate::space::{Model, ModelSpace};
use crate::workers::Workers;

/// What an answer is about: a problem, what its data were, and from which parameters to which.
///
/// ```
/// use vti::answer::Subject;
/// use vti::problem;
/// use vti::space::Subsets;
/// let problem = problem::from_fn(Subsets::new(3)?, |_, _, _| 0.0);
/// let subject = Subject::of(&problem).with_title("Which of three tones are there?");
/// assert_eq!(subject.units().names(), ["theta1", "theta2", "theta3"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    pub(super) asked: Asked<'a>,
    pub(super) title: Option<String>,
    pub(super) data: DataFacts,
    units: Units,
}

/// What was asked.
#[derive(Clone, Debug)]
pub(super) enum Asked<'a> {
    /// Anything.
    Own,
    /// Which covariates matter?
    Select(&'a Selection),
    /// What causes what? With a graph to compare with, and where it is from.
    Dag(&'a Dag, Option<(String, Graph)>),
    /// How many are there?
    Count(&'a dyn Counting),
}

impl<'a> Subject<'a> {
    /// Any problem, whose parameters are learned in the units of its data.
    pub fn of(problem: &dyn Problem) -> Self {
        let units = Units::identity(problem.parameter_names());
        Self { asked: Asked::Own, title: None, data: DataFacts::default(), units }
    }

    /// Which covariates matter for a response.
    pub fn of_selection(selection: &'a Selection) -> Self {
        let design = selection.design();
        let data = DataFacts {
            response: Some(design.response_name().into()),
            rows: Some(design.rows()),
            terms: Some(design.terms().len()),
            prior: Some(selection.prior_in_words()),
            ..DataFacts::default()
        };
        Self { asked: Asked::Select(selection), title: None, data, units: Units::of_selection(selection) }
    }

    /// What causes what, where columns were divided by `scales`, one for each node.
    pub fn of_dag(dag: &'a Dag, scales: &[f64]) -> Self {
        let (names, nodes) = (dag.table().names.iter().cloned(), dag.space().nodes());
        let interventions = dag.interventions();
        let data = DataFacts {
            rows: Some(dag.table().rows()),
            nodes: Some(nodes),
            prior: Some(dag.prior_in_words()),
            interventions: (!interventions.is_empty()).then(|| names.zip(interventions.counts(nodes)).collect()),
            ..DataFacts::default()
        };
        Self { asked: Asked::Dag(dag, None), title: None, data, units: Units::of_dag(dag, scales) }
    }

    /// How many there are, of `rows` rows with a prior in words. Parameters have these names and are learned in the units of the
    /// data.
    pub fn of_count(counting: &'a dyn Counting, names: Vec<String>, rows: usize, prior: &str) -> Self {
        let data = DataFacts { rows: Some(rows), prior: Some(prior.into()), ..DataFacts::default() };
        Self { data, ..Self::counting(counting, names) }
    }

    /// How many there are, of parameters with these names that are learned in the units of the data.
    pub(super) fn counting(counting: &'a dyn Counting, names: Vec<String>) -> Self {
        Self { asked: Asked::Count(counting), title: None, data: DataFacts::default(), units: Units::identity(names) }
    }

    /// With the question in words, which a problem of one's own has no other way to say.
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// With where the data are and what tells their contents apart, and how columns were scaled.
    pub fn with_source(mut self, path: &str, fingerprint: &str, scale: Option<&str>) -> Self {
        (self.data.path, self.data.fingerprint) = (Some(path.into()), Some(fingerprint.into()));
        self.data.scale = scale.map(String::from);
        self
    }

    /// With columns that did not take part.
    pub fn with_left_out(mut self, left_out: &[LeftOut]) -> Self {
        self.data.left_out = left_out.to_vec();
        self
    }

    /// With a graph to compare with, and where it is from; only causal graphs are compared.
    pub fn with_truth(mut self, path: &str, graph: &Graph) -> Self {
        if let Asked::Dag(_, truth) = &mut self.asked {
            *truth = Some((path.into(), graph.clone()));
        }
        self
    }

    /// From learned parameters to those in the units of the data.
    pub fn units(&self) -> &Units {
        &self.units
    }

    /// Whether parameters mean something each on its own: hidden units do not.
    pub(super) fn has_coefficients(&self) -> bool {
        match self.asked {
            Asked::Own | Asked::Select(_) | Asked::Count(_) => true,
            Asked::Dag(dag, _) => matches!(dag.settings().sem, Sem::Linear {}),
        }
    }

    /// The model that has just these parameters, as places among their names; of several words that mean it, the one that
    /// represents them. None where no model has, and of problems of one's own.
    pub fn model_of(&self, active: &[usize]) -> Option<Model> {
        match self.asked {
            Asked::Own => None,
            Asked::Count(counting) => counting.model_of(active),
            Asked::Select(selection) => {
                let (space, terms) = (selection.space(), selection.design().terms());
                let predictors = selection.design().predictors();
                let mut next = space.max_dim() - predictors * terms.iter().map(|(_, columns)| columns).sum::<usize>();
                let mut bit = |columns: &usize| {
                    let first = next;
                    next += columns * predictors;
                    u16::from(active.contains(&first))
                };
                Some(terms.iter().map(|(_, columns)| bit(columns)).collect::<Vec<u16>>().into())
            }
            Asked::Dag(dag, _) => {
                let space = dag.space();
                let first = |from, to| space.edge_coordinates(from, to).map(|range| range.start);
                let has = |&(from, to): &(usize, usize)| first(from, to).is_some_and(|place| active.contains(&place));
                let edges: Vec<(usize, usize)> = ordered_pairs(space.nodes()).filter(has).collect();
                dag.word(&Graph::from_edges(space.nodes(), &edges).ok()?)
            }
        }
    }

    /// The exact answer, where that is cheap.
    pub fn exact(&self, workers: &Workers) -> Result<Option<Exact>, AnswerError> {
        match self.asked {
            // Where numbers of components are known exactly, nothing is learned.
            Asked::Own | Asked::Count(_) => Ok(None),
            Asked::Select(selection) => Ok(Exact::of_selection(selection, workers).transpose()?),
            Asked::Dag(dag, _) => Ok(Exact::of_dag(dag).transpose()?),
        }
    }
}
