//! What all runs come to: a table by group, what was wrong, and the worst cases.

use std::fmt::Write as _;

use anyhow::Result;
use vti::check::VerdictKind;

use super::judge::{Compared, Outcome};
use crate::report::number;

/// How many of the worst runs are listed.
const WORST: usize = 10;

/// In Markdown.
pub(super) fn text(outcomes: &[Outcome]) -> Result<String> {
    let mut text = String::new();
    let mut groups: Vec<&str> = Vec::new();
    for run in outcomes {
        if !groups.contains(&&*run.group) {
            groups.push(&run.group);
        }
    }
    writeln!(text, "{HEADER}")?;
    for group in &groups {
        let own: Vec<&Outcome> = outcomes.iter().filter(|run| run.group == *group).collect();
        writeln!(text, "{}", row(group, &own))?;
    }
    writeln!(text, "{}\n", row("all", &outcomes.iter().collect::<Vec<_>>()))?;
    listed(&mut text, "False trusts", outcomes.iter().filter(|run| run.is_false_trust()))?;
    listed(&mut text, "False alarms", outcomes.iter().filter(|run| run.is_false_alarm()))?;
    let mut worst: Vec<&Outcome> = outcomes.iter().collect();
    worst.sort_by(|a, b| b.largest().total_cmp(&a.largest()));
    worst.truncate(WORST);
    listed(&mut text, "The worst", worst.into_iter())?;
    Ok(text)
}

const HEADER: &str = "\
| group | runs | trust | corrected | do not trust | false trusts | false alarms | within 2 errors | within 4 | strictly 2 | strictly 4 | \
largest error of a part | median | of q, median | training, s | check, s |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

fn row(name: &str, runs: &[&Outcome]) -> String {
    let count = |is: &dyn Fn(&Outcome) -> bool| runs.iter().filter(|run| is(run)).count();
    let said = |kind: VerdictKind| count(&|run| run.verdict == kind);
    // What a verdict warns of need not be right.
    let trusted = || runs.iter().filter(|run| run.verdict != VerdictKind::DoNotTrust).flat_map(|run| &run.compared);
    let share = |is: &dyn Fn(&Compared) -> bool| {
        let all = trusted().count().max(1);
        format!("{:.1} %", 100.0 * trusted().filter(|one| is(one)).count() as f64 / all as f64)
    };
    let parts: Vec<&Compared> = trusted().filter(|one| !one.is_model).collect();
    let largest = parts.iter().map(|one| one.off()).fold(0.0, f64::max);
    let seconds = |of: fn(&Outcome) -> f64| runs.iter().map(|run| of(run)).sum::<f64>() / runs.len().max(1) as f64;
    let cells = [
        name.into(),
        runs.len().to_string(),
        said(VerdictKind::Trust).to_string(),
        said(VerdictKind::Corrected).to_string(),
        said(VerdictKind::DoNotTrust).to_string(),
        count(&Outcome::is_false_trust).to_string(),
        count(&Outcome::is_false_alarm).to_string(),
        share(&|one| one.is_within(2.0)),
        share(&|one| one.is_within(4.0)),
        share(&|one| one.is_strictly_within(2.0)),
        share(&|one| one.is_strictly_within(4.0)),
        number(largest),
        number(median(parts.iter().map(|one| one.off()))),
        number(median(parts.iter().map(|one| one.q_off()))),
        format!("{:.1}", seconds(|run| run.train_seconds)),
        format!("{:.1}", seconds(|run| run.check_seconds)),
    ];
    format!("| {} |", cells.join(" | "))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn listed<'a>(text: &mut String, title: &str, runs: impl Iterator<Item = &'a Outcome>) -> Result<()> {
    writeln!(text, "## {title}\n")?;
    let lines: Vec<String> = runs.map(line).collect();
    writeln!(text, "{}\n", if lines.is_empty() { "None.".into() } else { lines.join("\n") })?;
    Ok(())
}

/// A run with what it got most wrong.
pub(super) fn line(run: &Outcome) -> String {
    let worst = run.worst().map_or(String::new(), |one| {
        let Compared { what, truth, truth_se, corrected, se, q, .. } = one;
        format!("{what}: {corrected:.4} ± {se:.4}, q {q:.4}, truth {truth:.4} ± {truth_se:.4}")
    });
    let (train, check) = (run.train_seconds, run.check_seconds);
    format!(
        "- **{}**, seed {} ({}, {train:.1} s + {check:.1} s): {worst}. *{}*",
        run.case, run.seed, run.method, run.text
    )
}
