//! A battery: can verdicts be relied on? Problems whose answers are known, learned with default settings, checked, and compared.

mod brute;
mod counting;
pub(crate) mod evidences;
mod gaussian;
mod graphs;
mod judge;
mod known;
mod own;
mod summary;
mod tables;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use vti::device::{Cpu, Device};
use vti::workers::Workers;

use self::judge::Outcome;
use self::known::{Case, Plan, Question, Truth, exactly};
use crate::Options;
use crate::report::{print_line, today};

/// How to run the battery.
#[derive(Args)]
pub(crate) struct TrustOptions {
    #[command(flatten)]
    options: Options,
    /// Seeds of training for each problem
    #[arg(long, default_value_t = 5)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// Find the answers that take minutes, and write them to bench/results/trust/truths.json
    #[arg(long)]
    make_truths: bool,
    /// Only say what --save would write about the runs in bench/results/trust/DATE.jsonl
    #[arg(long, conflicts_with = "make_truths")]
    summarise: bool,
}

/// Of a quick run, every so many problems.
const QUICK: usize = 5;

/// Groups whose answers are in the file.
const SLOW: [&str; 3] = ["robust", "generalised", "non-linear graph"];

/// Runs everything.
pub(crate) fn run(arguments: &TrustOptions) -> Result<()> {
    let options = &arguments.options;
    let plans: Vec<Plan> = [gaussian::plans(), brute::plans(), graphs::plans(), own::plans(), counting::plans()]
        .into_iter()
        .flatten()
        .collect();
    let device = Cpu::<f32>::new(options.threads)?;
    if arguments.make_truths {
        return make_truths(&plans, options, device.workers());
    }
    if arguments.summarise {
        return save(&read_saved()?, plans.len(), options.threads);
    }
    let truths = read_truths()?;
    let chosen = plans.iter().filter(|plan| options.wants(&plan.name)).step_by(if options.quick { QUICK } else { 1 });
    let cases: Vec<Case> = chosen.map(|plan| case(plan, &truths, device.workers())).collect::<Result<_>>()?;
    // What was saved today is added to.
    let mut outcomes = if options.save { read_saved()? } else { Vec::new() };
    let seeds = if options.quick { 1 } else { arguments.seeds };
    for seed in arguments.first_seed..arguments.first_seed + seeds {
        for case in &cases {
            if outcomes.iter().any(|run| run.case == case.name && run.seed == seed) {
                continue;
            }
            let outcome = judge::run(case, seed, &device).with_context(|| format!("{}, seed {seed}", case.name))?;
            let mark = match (outcome.is_false_trust(), outcome.is_false_alarm()) {
                (true, _) => "FALSE TRUST ",
                (_, true) => "false alarm ",
                _ => "",
            };
            let line = if options.json {
                serde_json::to_string(&outcome)?
            } else {
                mark.to_owned() + &summary::line(&outcome)
            };
            print_line(&line);
            outcomes.push(outcome);
            if options.save {
                save(&outcomes, plans.len(), options.threads)?;
            }
        }
    }
    if !options.json {
        print_line(&summary::text(&outcomes)?);
    }
    Ok(())
}

fn case(plan: &Plan, truths: &BTreeMap<String, Truth>, workers: &Workers) -> Result<Case> {
    let question = (plan.question)().with_context(|| plan.name.clone())?;
    let truth = match (&plan.log_evidence, &question) {
        (Some(log_evidence), question) => {
            Truth::of_evidences(&*question.problem(), |model| exactly(log_evidence(model)))?
        }
        _ if SLOW.contains(&plan.group) => {
            truths.get(&plan.name).with_context(|| format!("{}: run with --make-truths first", plan.name))?.clone()
        }
        (None, Question::Selection(selection)) => gaussian::truth(selection, workers)?,
        (None, Question::Dag(dag)) => graphs::truth(dag, workers)?,
        (None, Question::Own(_) | Question::Count(_) | Question::Slow(_)) => {
            anyhow::bail!("{}: no evidences", plan.name)
        }
    };
    Ok(Case { group: plan.group, name: plan.name.clone(), question, truth })
}

/// Finds what is not in the file yet; of those that are wanted by name, all.
fn make_truths(plans: &[Plan], options: &Options, workers: &Workers) -> Result<()> {
    let mut truths = read_truths()?;
    truths.retain(|name, _| options.only.is_none() || !options.wants(name));
    for plan in plans.iter().filter(|plan| SLOW.contains(&plan.group)) {
        if truths.contains_key(&plan.name) || !options.wants(&plan.name) {
            continue;
        }
        let start = Instant::now();
        let truth = match (plan.question)()? {
            Question::Selection(selection) => brute::truth(&selection, workers)?,
            Question::Dag(dag) => graphs::truth(&dag, workers)?,
            Question::Own(_) | Question::Count(_) | Question::Slow(_) => continue,
        };
        let worst = truth.parts.iter().chain(truth.models.values()).map(|one| one.se).fold(0.0, f64::max);
        let seconds = start.elapsed().as_secs_f64();
        print_line(&format!("{}: {seconds:.1} s, largest error of a probability {worst:.4}", plan.name));
        truths.insert(plan.name.clone(), truth);
        std::fs::create_dir_all(folder())?;
        std::fs::write(folder().join("truths.json"), serde_json::to_string_pretty(&truths)? + "\n")?;
    }
    Ok(())
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("results").join("trust")
}

fn read_truths() -> Result<BTreeMap<String, Truth>> {
    match std::fs::read_to_string(folder().join("truths.json")) {
        Ok(text) => Ok(serde_json::from_str(&text)?),
        Err(_) => Ok(BTreeMap::new()),
    }
}

fn read_saved() -> Result<Vec<Outcome>> {
    let text = std::fs::read_to_string(folder().join(format!("{}.jsonl", today()))).unwrap_or_default();
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn save(outcomes: &[Outcome], problems: usize, threads: usize) -> Result<()> {
    let mut text = format!(
        "# trust, {}\n\n{problems} problems whose answers are known; number of threads: {threads}; f32, default settings but 1,200 steps of 512 \
         draws (graphs: 1,000 of 128; numbers of components and layers: those of the commands). The exact answer was not given to the verdict.\n\nFalse trust: trusted or corrected, and a \
         reported probability (of a part, an edge, or a model of at least 0.05) is off by more than 0.03 and by more than four errors, \
         its own and the truth's. False alarm: not trusted, and all are within 0.03. Errors, and how many of them cover the truth, are \
         those of answers that were trusted or corrected; within: differences below 0.0005 are none; strictly: they count.\n\n",
        today()
    );
    text += &summary::text(outcomes)?;
    let mut json = String::new();
    for outcome in outcomes {
        writeln!(json, "{}", serde_json::to_string(outcome)?)?;
    }
    std::fs::create_dir_all(folder())?;
    std::fs::write(folder().join(format!("{}.md", today())), text)?;
    std::fs::write(folder().join(format!("{}.jsonl", today())), json)?;
    Ok(())
}
