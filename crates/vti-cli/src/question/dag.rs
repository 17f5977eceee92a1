//! What causes what?

use std::sync::Arc;

use anyhow::Result;
use vti::answer::Subject;
use vti::posterior::GraphPosterior;
use vti::problem::Problem;
use vti::problem::dag::{Dag, DagError, DagSettings, Noise, RulesError, Score, Sem};

use super::{InClosedForm, Question, other_kind};
use crate::config::{Config, DagConfig, Precision, ProblemConfig};
use crate::data::{Edges, NodeChoice, Nodes, Said, read_edges};
use crate::failure::Usage;
use crate::shown::shown;

/// Causal graphs with their data.
#[derive(Debug)]
pub(crate) struct Causal {
    pub(crate) nodes: Nodes,
    pub(crate) dag: Arc<Dag>,
    /// The graph to compare with, and its file.
    truth: Option<(String, Edges)>,
    notes: Vec<String>,
}

impl Question for Causal {
    fn load(config: &Config) -> Result<Self> {
        let ProblemConfig::Dag(asked) = &config.problem else { return Err(other_kind(config)) };
        let source = &config.source;
        let choice = NodeChoice {
            include: &source.include,
            exclude: &source.exclude,
            log: &asked.log,
            scale: asked.scale(),
            said: Said { categorical: &asked.categorical, ordered: &asked.ordered },
            missing: source.missing,
            missing_values: &source.missing_values,
            interventions: asked.interventions.as_deref(),
            targets: &asked.targets,
        };
        let nodes = Nodes::load(&source.read()?, &choice)?;
        let names = &nodes.table.names;
        let settings = asked.settings(&nodes.file, names)?;
        let truth = asked.truth.as_ref().map(|path| Ok::<_, anyhow::Error>((path.clone(), read_edges(path, names)?)));
        let truth = truth.transpose()?;
        let mut notes = nodes.notes.clone();
        notes.extend(truth.iter().flat_map(|(_, edges)| edges.notes.clone()));
        let dag = Dag::with_interventions(nodes.table.clone(), nodes.interventions.clone(), settings);
        let dag = dag.map_err(|error| explain(error, names))?;
        if let (Sem::Linear {}, Some(name)) = (asked.sem, dag.table().first_of_categories()) {
            notes.push(format!(
                "{} holds categories, whose evidences have no closed form: graphs are learned and checked, not summed exactly",
                shown(name)
            ));
        }
        let dag = if config.machine.precision == Precision::F64 { dag.in_double_precision() } else { dag };
        Ok(Self { nodes, dag: Arc::new(dag), truth, notes })
    }

    fn problem(&self) -> Arc<dyn Problem> {
        self.dag.clone()
    }

    fn fingerprint(&self) -> &str {
        &self.nodes.fingerprint
    }

    fn headline(&self) -> String {
        let DagSettings { sem, noise, score, .. } = self.dag.settings();
        let sem = match sem {
            Sem::Linear {} => "linear equations".to_string(),
            Sem::Mlp { hidden, bias: false } => format!("equations of {hidden} hidden units"),
            Sem::Mlp { hidden, bias: true } => format!("equations of {hidden} hidden units with biases"),
        };
        let noise = match noise {
            Noise::Known { sigma } => format!("noise {sigma}"),
            Noise::Unknown {} => "unknown noise".into(),
        };
        let score = match score {
            Score::Independent {} => "",
            Score::Bge { .. } => ", BGe score",
        };
        let table = &self.nodes.table;
        let count = table.names.len();
        let of_categories = (0..count).filter(|&node| table.categories(node).is_some()).count();
        let of_categories =
            if of_categories == 0 { String::new() } else { format!(" ({of_categories} of categories)") };
        format!("{} rows, graphs over {count} nodes{of_categories}, {sem}, {noise}{score}", self.nodes.rows())
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn subject(&self, config: &Config) -> Subject<'_> {
        let scale = match &config.problem {
            ProblemConfig::Dag(asked) => Some(asked.scale().name()),
            _ => None,
        };
        let subject = Subject::of_dag(&self.dag, &self.nodes.scales);
        let subject =
            subject.with_source(&config.source.data, self.fingerprint(), scale).with_left_out(&self.nodes.left_out);
        match &self.truth {
            Some((path, truth)) => subject.with_truth(path, &truth.graph),
            None => subject,
        }
    }

    fn in_closed_form(&self) -> Result<InClosedForm<'_>, String> {
        GraphPosterior::affordable(&self.dag).map_err(|error| error.to_string())?;
        Ok(InClosedForm::Graphs(&self.dag))
    }

    fn data_bytes(&self) -> f64 {
        let nodes = self.nodes.table.names.len() as f64;
        // A node that was set in some rows has columns of its own without them, in single precision.
        let set = self.nodes.interventions.counts(self.nodes.table.names.len());
        let copies = 3.0 + 0.5 * set.iter().filter(|rows| **rows > 0).count() as f64;
        8.0 * (copies * nodes * self.nodes.rows() as f64 + nodes * nodes)
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
            score: self.score,
            prior: self.prior,
            edge_penalty: self.edge_penalty,
            rules,
        })
    }
}
