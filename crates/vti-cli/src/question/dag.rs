//! What causes what?

use std::collections::HashMap;

use anyhow::Result;
use vti::device::Device;
use vti::graph::Graph;
use vti::problem::Problem;
use vti::problem::dag::{Dag, DagError, DagSettings, Enumeration, LinearEvidence, Noise, RulesError, Sem, enumerate};
use vti::space::{Model, ModelSpace};

use super::{Exact, Question, other_kind};
use crate::answer::Answer;
use crate::config::{Config, DagConfig, ProblemConfig};
use crate::data::{Edges, NodeChoice, Nodes, read_edges};
use crate::failure::Usage;
use crate::graphs::Graphs;
use crate::summary::{DagFound, DataSummary, EdgesSummary, Found};
use crate::units::Units;

/// Causal graphs with their data.
#[derive(Debug)]
pub(crate) struct Causal {
    pub(crate) nodes: Nodes,
    pub(crate) dag: Dag,
    /// The graph to compare with, and its file.
    truth: Option<(String, Edges)>,
    notes: Vec<String>,
}

/// Numbers that draws of hidden units may take up, in memory and in the file of draws.
const MOST_NUMBERS: usize = 1 << 23;

impl Causal {
    /// The exact answer, or why there is none.
    pub(crate) fn enumerate(&self) -> Result<Enumeration> {
        let DagSettings { sem, noise, weight_scale, .. } = self.dag.settings();
        let (Sem::Linear {}, Noise::Known { sigma }) = (sem, noise) else {
            let hint = "hint: --sem linear --noise SIGMA";
            let text = "exact answers are known for linear equations with known noise only";
            return Err(Usage(format!("{text}\n{hint}")).into());
        };
        let nodes = self.nodes.table.names.len();
        if nodes > MOST_EXACT {
            let hint = "hint: leave columns out with --exclude";
            let text = format!("{nodes} nodes are too many to enumerate all graphs, {MOST_EXACT} are the most");
            return Err(Usage(format!("{text}\n{hint}")).into());
        }
        let evidence = LinearEvidence::new(&self.nodes.table, *sigma, *weight_scale)?;
        Ok(enumerate(self.dag.prior(), |node, parents| evidence.log_evidence(node, parents))?)
    }

    /// The canonical word of a graph.
    pub(crate) fn word(&self, graph: &Graph) -> Option<Model> {
        let nodes = graph.nodes();
        let mut adjacency = vec![false; nodes * nodes];
        graph.edges().for_each(|(from, to)| adjacency[from * nodes + to] = true);
        self.dag.space().encode(&adjacency).ok()
    }
}

/// The most nodes over which all graphs are enumerated.
const MOST_EXACT: usize = 5;

/// Ordered pairs of different nodes, in the order of a space's features.
pub(crate) fn pairs(nodes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..nodes).flat_map(move |from| (0..nodes).filter(move |&to| to != from).map(move |to| (from, to)))
}

impl Question for Causal {
    type Problem = Dag;

    fn load(config: &Config) -> Result<Self> {
        let ProblemConfig::Dag(asked) = &config.problem else { return Err(other_kind(config)) };
        let source = &config.source;
        let choice =
            NodeChoice { include: &source.include, exclude: &source.exclude, log: &asked.log, scale: asked.scale() };
        let nodes = Nodes::load(&source.data, &choice)?;
        let names = &nodes.table.names;
        let settings = asked.settings(&nodes.file, names)?;
        let truth = asked.truth.as_ref().map(|path| Ok::<_, anyhow::Error>((path.clone(), read_edges(path, names)?)));
        let truth = truth.transpose()?;
        let mut notes = nodes.notes.clone();
        notes.extend(truth.iter().flat_map(|(_, edges)| edges.notes.clone()));
        let dag = Dag::new(nodes.table.clone(), settings).map_err(|error| explain(error, names))?;
        Ok(Self { nodes, dag, truth, notes })
    }

    fn problem(&self) -> &Dag {
        &self.dag
    }

    fn fingerprint(&self) -> &str {
        &self.nodes.fingerprint
    }

    fn headline(&self) -> String {
        let DagSettings { sem, noise, .. } = self.dag.settings();
        let sem = match sem {
            Sem::Linear {} => "linear equations".to_string(),
            Sem::Mlp { hidden, bias: false } => format!("equations of {hidden} hidden units"),
            Sem::Mlp { hidden, bias: true } => format!("equations of {hidden} hidden units with biases"),
        };
        let noise = match noise {
            Noise::Known { sigma } => format!("noise {sigma}"),
            Noise::Unknown {} => "unknown noise".into(),
        };
        format!("{} rows, graphs over {} nodes, {sem}, {noise}", self.nodes.rows(), self.nodes.table.names.len())
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn units(&self) -> Units {
        Units::of_dag(&self.dag, &self.nodes.scales)
    }

    fn model_of(&self, active: &[usize]) -> Option<Model> {
        let nodes = self.nodes.table.names.len();
        let space = self.dag.space();
        let first = |from, to| space.edge_coordinates(from, to).map(|range| range.start);
        let has = |&(from, to): &(usize, usize)| first(from, to).is_some_and(|place| active.contains(&place));
        let edges: Vec<(usize, usize)> = pairs(nodes).filter(has).collect();
        self.word(&Graph::from_edges(nodes, &edges).ok()?)
    }

    fn draw_step(&self, draws: usize) -> usize {
        match self.dag.settings().sem {
            Sem::Linear {} => 1,
            Sem::Mlp { .. } => (draws * self.dag.space().max_dim()).div_ceil(MOST_NUMBERS).max(1),
        }
    }

    fn data_bytes(&self) -> f64 {
        let nodes = self.nodes.table.names.len() as f64;
        8.0 * (3.0 * nodes * self.nodes.rows() as f64 + nodes * nodes)
    }

    fn usual_dim(&self) -> f64 {
        // Preconditioners are of one node, with half of the others as parents.
        0.5 * (self.dag.space().max_dim() / self.nodes.table.names.len()) as f64
    }

    fn exact<D: Device>(&self, _: &D) -> Option<Result<Exact>> {
        let DagSettings { sem, noise, .. } = self.dag.settings();
        let possible = matches!((sem, noise), (Sem::Linear {}, Noise::Known { .. }));
        let few = self.nodes.table.names.len() <= MOST_EXACT;
        (possible && few).then(|| self.enumerate().map(|exact| self.compared(&exact)))
    }

    fn data(&self, config: &Config) -> DataSummary {
        let scale = match &config.problem {
            ProblemConfig::Dag(asked) => Some(asked.scale().name().to_string()),
            ProblemConfig::Select(_) => None,
        };
        DataSummary {
            path: config.source.data.clone(),
            fingerprint: self.nodes.fingerprint.clone(),
            response: None,
            rows: self.nodes.rows(),
            terms: None,
            nodes: Some(self.nodes.table.names.len()),
            scale,
        }
    }

    fn found(&self, answer: &Answer<'_>) -> Result<Found> {
        let names = &self.nodes.table.names;
        let edges = EdgesSummary::new(names, &answer.parts());
        let graphs = Graphs::new(&self.dag, &answer.corrected_models());
        let best = answer.top_model().and_then(|word| self.dag.graph(word));
        let distance = |(path, truth): &(String, Edges)| {
            graphs.distance(path, &truth.graph, &Graphs::new(&self.dag, &answer.q_words()), &edges)
        };
        let linear = matches!(self.dag.settings().sem, Sem::Linear {});
        Ok(Found::Dag(Box::new(DagFound {
            graph: graphs.summary(best.as_ref(), &answer.corrected_words(), &edges),
            truth: self.truth.as_ref().map(distance).transpose()?,
            edges,
            coefficients: linear.then(|| answer.coefficients()),
        })))
    }
}

impl Causal {
    fn compared(&self, exact: &Enumeration) -> Exact {
        let nodes = self.nodes.table.names.len();
        let words = exact.graphs.iter().zip(&exact.probabilities);
        let probabilities: HashMap<Model, f64> =
            words.filter_map(|(graph, probability)| Some((self.word(graph)?, *probability))).collect();
        Exact {
            log_evidence: exact.log_evidence,
            parts: pairs(nodes).map(|(from, to)| exact.edges[from * nodes + to]).collect(),
            // A graph that the rules forbid has none.
            probability: Box::new(move |model| Some(probabilities.get(model).copied().unwrap_or(0.0))),
        }
    }
}

/// What the library does not like, with names instead of numbers.
fn explain(error: DagError, names: &[String]) -> anyhow::Error {
    let DagError::Rules(error) = error else { return error.into() };
    let name = |node: usize| names.get(node).map_or_else(|| node.to_string(), Clone::clone);
    let text = match error {
        RulesError::RequiredAndForbidden { from, to } => format!(
            "{}->{} is both required and forbidden\nhint: take it out of --require or --forbid",
            name(from),
            name(to)
        ),
        RulesError::RequiredAgainstTiers { from, to } => format!(
            "{}->{} is required, but the tier of {0} comes after that of {1}\nhint: tiers are listed earliest first",
            name(from),
            name(to)
        ),
        RulesError::RequiredCycle { node } => format!(
            "the required edges form a cycle through {}\nhint: no acyclic graph has all of them; take one out of --require",
            name(node)
        ),
        RulesError::TooManyRequired { node, required, most } => format!(
            "{} has {required} required causes, but --max-parents allows {most}\nhint: raise --max-parents, or require fewer",
            name(node)
        ),
        RulesError::TwoTiers { node } => {
            format!("{} is listed twice in --tiers\nhint: a column belongs to one tier at most", name(node))
        }
        other => return DagError::from(other).into(),
    };
    Usage(text).into()
}

impl DagConfig {
    /// What is assumed, with nodes by their numbers.
    fn settings(&self, file: &str, names: &[String]) -> Result<DagSettings> {
        let node = |name: &String, option: &'static str| {
            names.iter().position(|node| node == name).ok_or_else(|| crate::data::DataError::NoColumn {
                file: file.into(),
                name: name.clone(),
                option,
                names: names.to_vec(),
            })
        };
        let edges = |list: &[[String; 2]], option| {
            let edge = |[from, to]: &[String; 2]| {
                if from == to {
                    let text = format!("{option} {from}->{to}: a column cannot be its own cause\nhint: take it out");
                    return Err(anyhow::Error::new(Usage(text)));
                }
                Ok([node(from, option)?, node(to, option)?])
            };
            list.iter().map(edge).collect::<Result<Vec<[usize; 2]>>>()
        };
        let tiers = self.tiers.iter().map(|tier| tier.iter().map(|name| node(name, "--tiers")).collect());
        let rules = vti::problem::dag::Rules {
            required: edges(&self.require, "--require")?,
            forbidden: edges(&self.forbid, "--forbid")?,
            tiers: tiers.collect::<Result<_, _>>()?,
            max_parents: self.max_parents,
        };
        Ok(DagSettings {
            sem: self.sem,
            noise: self.noise,
            weight_scale: self.weight_scale,
            prior: self.prior,
            edge_penalty: self.edge_penalty,
            rules,
        })
    }
}
