//! Options of `vti dag`.

use clap::{Args, ValueEnum};
use vti::problem::dag::{GraphPrior, Noise, Scaling, Score, Sem};

use super::{RunArgs, name_directory, replace, replace_list};
use crate::config::{Config, DagConfig, ProblemConfig, SourceConfig};
use crate::data::{ALL, Missing};
use crate::failure::Usage;

/// `vti dag`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DagArgs {
    #[command(flatten)]
    pub(crate) question: GraphArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

impl DagArgs {
    pub(crate) fn settings(self) -> anyhow::Result<(Config, RunArgs)> {
        let Self { question, run } = self;
        let mut config = question.settings(&run.set)?;
        run.apply(&mut config);
        name_directory(&mut config);
        Ok((config, run))
    }
}

/// How a node follows its parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SemName {
    /// A layer of hidden units
    Mlp,
    /// A weighted sum
    Linear,
}

/// What is uniform under the prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PriorName {
    /// Orders of the nodes with edges along them
    Orders,
    /// Graphs
    Graphs,
}

/// The prior of weights and noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScoreName {
    /// Weights and noise of each equation are independent
    Independent,
    /// Normal-Wishart (BGe): Markov equivalent graphs have the same evidence
    Bge,
}

/// How columns are brought to a common scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScaleName {
    /// As they were measured
    None,
    /// Each column less its mean
    Centre,
    /// Each column less its mean, divided by its standard deviation
    Columns,
    /// Each column less its mean, all divided by one standard deviation
    Table,
}

/// What becomes of rows with missing values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MissingName {
    /// They are counted and refused
    Error,
    /// They are left out
    Drop,
}

impl From<MissingName> for Missing {
    fn from(name: MissingName) -> Self {
        match name {
            MissingName::Error => Self::Error,
            MissingName::Drop => Self::Drop,
        }
    }
}

/// A table, and what is assumed about its causes and effects; hidden common causes are assumed away.
#[derive(Args, Clone, Debug)]
pub(crate) struct GraphArgs {
    /// A CSV or Parquet file, or - for standard input; its first line holds the names of the columns, which are the nodes
    pub(crate) data: String,
    /// How a column follows its causes [default: mlp]
    #[arg(long, value_enum)]
    sem: Option<SemName>,
    /// Hidden units of each column's equation [default: 10]
    #[arg(long, value_name = "H")]
    hidden: Option<usize>,
    /// Hidden units and outputs have biases
    #[arg(long)]
    bias: bool,
    /// Standard deviation of a column given its causes, in the units that --scale leaves; or unknown, for each its own
    /// [default: unknown]
    #[arg(long, value_name = "SIGMA|unknown", value_parser = noise, allow_negative_numbers = true)]
    noise: Option<Noise>,
    /// The prior of weights and noise; bge, for linear equations, does not tell Markov equivalent graphs apart, and with
    /// --graph-prior graphs they are equally probable [default: independent]
    #[arg(long, value_enum)]
    score: Option<ScoreName>,
    /// What is equally probable beforehand [default: orders]
    #[arg(long, value_enum)]
    graph_prior: Option<PriorName>,
    /// By how much each edge lowers the log prior [default: 0]
    #[arg(long, value_name = "GAMMA", allow_negative_numbers = true)]
    edge_penalty: Option<f64>,
    /// Prior standard deviation of weights [default: 1]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    weight_scale: Option<f64>,
    /// A column that names, row by row, the nodes that were set from outside: empty for none, a;b for two
    #[arg(long, value_name = "COLUMN")]
    interventions: Option<String>,
    /// What other words in that column mean: drug=a,heat=b+c,sham=
    #[arg(long, value_name = "WORD=NODES", value_delimiter = ',', value_parser = target, requires = "interventions")]
    targets: Vec<Target>,
    /// Edges that every graph has: a->b,c->d
    #[arg(long, value_name = "EDGES", value_delimiter = ',', value_parser = edge)]
    require: Vec<[String; 2]>,
    /// Edges that no graph has
    #[arg(long, value_name = "EDGES", value_delimiter = ',', value_parser = edge)]
    forbid: Vec<[String; 2]>,
    /// Groups of columns, earliest first: a,b;c,d. None of a later group is a cause in an earlier one
    #[arg(long, value_name = "TIERS", value_delimiter = ';', value_parser = tier)]
    tiers: Vec<Tier>,
    /// The most causes a column may have
    #[arg(long, value_name = "K")]
    max_parents: Option<usize>,
    /// Only these columns take part
    #[arg(long, visible_alias = "columns", value_name = "COLUMNS", value_delimiter = ',')]
    include: Vec<String>,
    /// These columns do not take part
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    exclude: Vec<String>,
    /// What becomes of missing values [default: error]
    #[arg(long, value_enum)]
    missing: Option<MissingName>,
    /// Words that stand for missing values, beside the usual ones: an empty cell, NA, N/A, NaN, null, . and ?
    #[arg(long, value_name = "WORDS", value_delimiter = ',', allow_hyphen_values = true)]
    missing_values: Vec<String>,
    /// Take logarithms of all columns, or of these
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', num_args = 0.., require_equals = true, default_missing_value = ALL)]
    log: Vec<String>,
    /// These columns hold categories, though they are numbers; texts, and true and false, are categories without being named
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    categorical: Vec<String>,
    /// These hold ordered categories, lowest first: size=low<mid<high; of numbers the name is enough. Where nothing causes a column,
    /// all probabilities of its categories are equally likely beforehand
    #[arg(long, value_name = "COLUMN=LEVELS", value_delimiter = ',', value_parser = order)]
    ordered: Vec<Order>,
    /// How columns of numbers are brought to a common scale [default: columns if the noise is unknown, none otherwise]
    #[arg(long, value_enum)]
    scale: Option<ScaleName>,
    /// A graph to compare with: a CSV file of edges under the header from,to
    #[arg(long, value_name = "GRAPH.csv")]
    truth: Option<String>,
}

/// A word and the nodes it means.
#[derive(Clone, Debug)]
struct Target(String, Vec<String>);

/// A column and its levels, lowest first.
#[derive(Clone, Debug)]
struct Order(String, Vec<String>);

/// Columns of one tier.
#[derive(Clone, Debug)]
struct Tier(Vec<String>);

impl GraphArgs {
    /// The settings of a run; options win over changes of keys.
    pub(crate) fn settings(self, changes: &[String]) -> anyhow::Result<Config> {
        let asked = ProblemConfig::Dag(DagConfig::default());
        let mut config = Config::new(SourceConfig::all(&self.data), asked).with(changes)?;
        config.source.data.clone_from(&self.data);
        if let ProblemConfig::Dag(asked) = &mut config.problem {
            self.apply(&mut config.source, asked)?;
        }
        Ok(config)
    }

    /// Changes what the options name.
    fn apply(self, source: &mut SourceConfig, asked: &mut DagConfig) -> Result<(), Usage> {
        let Self {
            data: _,
            sem,
            hidden,
            bias,
            noise,
            score,
            graph_prior,
            edge_penalty,
            weight_scale,
            interventions,
            targets,
            require,
            forbid,
            tiers,
            max_parents,
            include,
            exclude,
            missing,
            missing_values,
            log,
            categorical,
            ordered,
            scale,
            truth,
        } = self;
        asked.sem = equations(asked.sem, sem, hidden, bias)?;
        replace(&mut asked.noise, &noise);
        let score = score.map(|score| match score {
            ScoreName::Independent => Score::Independent {},
            ScoreName::Bge => Score::bge(),
        });
        replace(&mut asked.score, &score);
        if weight_scale.is_some() && asked.score != Score::default() {
            return Err(Usage("--score bge has its own prior of weights\nhint: leave --weight-scale out".into()));
        }
        asked.interventions = interventions.or(asked.interventions.take());
        if !targets.is_empty() {
            asked.targets = targets.into_iter().map(|Target(word, nodes)| (word, nodes)).collect();
        }
        replace(
            &mut asked.prior,
            &graph_prior.map(|prior| match prior {
                PriorName::Orders => GraphPrior::Orders,
                PriorName::Graphs => GraphPrior::Graphs,
            }),
        );
        replace(&mut asked.edge_penalty, &edge_penalty);
        replace(&mut asked.weight_scale, &weight_scale);
        replace_list(&mut asked.require, require);
        replace_list(&mut asked.forbid, forbid);
        replace_list(&mut asked.tiers, tiers.into_iter().map(|Tier(tier)| tier).collect());
        asked.max_parents = max_parents.or(asked.max_parents);
        replace_list(&mut source.include, include);
        replace_list(&mut source.exclude, exclude);
        replace(&mut source.missing, &missing.map(Missing::from));
        replace_list(&mut source.missing_values, missing_values);
        replace_list(&mut asked.log, log);
        replace_list(&mut asked.categorical, categorical);
        if !ordered.is_empty() {
            asked.ordered = ordered.into_iter().map(|Order(column, levels)| (column, levels)).collect();
        }
        let scale = scale.map(|scale| match scale {
            ScaleName::None => Scaling::None,
            ScaleName::Centre => Scaling::Centre,
            ScaleName::Columns => Scaling::Columns,
            ScaleName::Table => Scaling::Table,
        });
        asked.scale = scale.or(asked.scale);
        asked.truth = truth.or(asked.truth.take());
        Ok(())
    }
}

/// The equations that options ask for.
fn equations(before: Sem, sem: Option<SemName>, hidden: Option<usize>, bias: bool) -> Result<Sem, Usage> {
    let linear = sem == Some(SemName::Linear) || (sem.is_none() && before == Sem::Linear {});
    if linear {
        return match (hidden, bias) {
            (None, false) => Ok(Sem::Linear {}),
            _ => {
                Err(Usage("--sem linear has no hidden units and no biases\nhint: leave --hidden and --bias out".into()))
            }
        };
    }
    let before = if before == (Sem::Linear {}) { Sem::default() } else { before };
    Ok(match before {
        Sem::Mlp { hidden: width, bias: biased } => Sem::Mlp { hidden: hidden.unwrap_or(width), bias: bias || biased },
        other => other,
    })
}

fn noise(text: &str) -> Result<Noise, String> {
    match (text, text.parse::<f64>()) {
        ("unknown", _) => Ok(Noise::Unknown {}),
        (_, Ok(sigma)) if sigma > 0.0 && sigma.is_finite() => Ok(Noise::Known { sigma }),
        _ => Err("a positive number or unknown is needed".into()),
    }
}

fn edge(text: &str) -> Result<[String; 2], String> {
    match text.split_once("->").or_else(|| text.split_once('→')) {
        Some((from, to)) if !from.trim().is_empty() && !to.trim().is_empty() => {
            Ok([from.trim().into(), to.trim().into()])
        }
        _ => Err("an edge is written a->b".into()),
    }
}

fn target(text: &str) -> Result<Target, String> {
    let Some((word, nodes)) = text.split_once('=').filter(|(word, _)| !word.trim().is_empty()) else {
        return Err("targets are written word=node, word=node+node, or word= for none".into());
    };
    let nodes = nodes.split(['+', ';']).map(|node| node.trim().to_string()).filter(|node| !node.is_empty());
    Ok(Target(word.trim().into(), nodes.collect()))
}

fn order(text: &str) -> Result<Order, String> {
    let (column, levels) = text.split_once('=').map_or((text, None), |(column, levels)| (column, Some(levels)));
    let levels: Vec<String> =
        levels.iter().flat_map(|levels| levels.split('<')).map(|level| level.trim().to_string()).collect();
    if column.trim().is_empty() || levels.iter().any(String::is_empty) || levels.len() == 1 {
        return Err("ordered categories are written column=low<mid<high, or column alone where they are numbers".into());
    }
    Ok(Order(column.trim().into(), levels))
}

fn tier(text: &str) -> Result<Tier, String> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_string()).collect();
    if names.iter().any(String::is_empty) {
        return Err("tiers are written a,b;c,d".into());
    }
    Ok(Tier(names))
}
