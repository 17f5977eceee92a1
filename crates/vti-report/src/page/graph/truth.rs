//! How far the answer is from a known graph, beside answers that took no thought.

use vti::answer::Metric;
use vti::graph::metrics::Better;

use super::super::table::{Cell, Column, Kind, folded};
use super::Known;
use crate::markup::escape;
use crate::number;

pub(in super::super) fn section(known: &Known<'_>) -> Option<String> {
    let truth = known.graphs.truth.as_ref().filter(|truth| !truth.metrics.is_empty())?;
    let mut columns = vec![
        Column::new(Kind::Name, "metric"),
        Column::new(Kind::Number, "better"),
        Column::new(Kind::Number, "this answer"),
    ];
    columns.extend(truth.baselines.iter().map(|trivial| Column::new(Kind::Number, &trivial.name)));
    let rows: Vec<Vec<Cell>> = truth.metrics.iter().map(|metric| row(metric, truth.baselines.len())).collect();
    let count = rows.len();
    let name = known.truth_name().map_or_else(String::new, |name| format!(" ({})", escape(&name)));
    let edges = known.truth.as_ref().map_or(0, Vec::len);
    Some(format!(
        "<h2>Against the truth</h2><p class=\"caption\">The known graph{name} has {edges} edges among {} nodes. Each row \
         names its convention: the same name means different things elsewhere. Trivial answers stand beside this one; the \
         best of each row is bold. {}</p>{}",
        known.nodes,
        verdict(&truth.metrics),
        folded(&columns, rows, count, "")
    ))
}

fn row(metric: &Metric, baselines: usize) -> Vec<Cell> {
    let note = match metric.meaning.as_str() {
        "" => String::new(),
        note => format!("<span class=\"second\">{}</span>", escape(note)),
    };
    let better = match metric.better {
        Better::Higher => "higher ↑",
        Better::Lower => "lower ↓",
    };
    let mut cells = vec![Cell::name(&metric.label).followed_by(&note), Cell::html(better.into())];
    let trivial = (0..baselines).map(|index| metric.baselines.get(index).copied().flatten().unwrap_or(f64::NAN));
    let values: Vec<f64> = [value(metric)].into_iter().chain(trivial).collect();
    let best = best(&values, metric.better);
    let are_counts = values.iter().filter(|value| value.is_finite()).all(|value| value.fract() == 0.0);
    let written = |value: f64| if are_counts { number::tick(value, 1.0) } else { number::significant(value, 3) };
    cells.extend(values.iter().map(|&value| {
        let shown = written(value);
        let shown = if Some(value) == best { format!("<strong>{shown}</strong>") } else { shown };
        Cell::number(shown, value)
    }));
    cells
}

/// Of this answer.
fn value(metric: &Metric) -> f64 {
    metric.corrected.unwrap_or(f64::NAN)
}

fn best(values: &[f64], better: Better) -> Option<f64> {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    match better {
        Better::Higher => finite.max_by(f64::total_cmp),
        Better::Lower => finite.min_by(f64::total_cmp),
    }
}

/// In how many rows the answer beats all trivial ones.
fn verdict(metrics: &[Metric]) -> String {
    let beats = |metric: &&Metric| {
        let (value, trivial) = (value(metric), metric.baselines.iter().copied().flatten().collect::<Vec<f64>>());
        value.is_finite()
            && best(&trivial, metric.better).is_none_or(|trivial| match metric.better {
                Better::Higher => value > trivial,
                Better::Lower => value < trivial,
            })
    };
    let won = metrics.iter().filter(beats).count();
    match metrics.len() - won {
        0 => "This answer is better than every trivial one in every row.".into(),
        lost => format!("In {lost} of {} rows a trivial answer is as good or better.", metrics.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_wins_only_where_it_is_strictly_better() {
        let metric = |better, value, baselines: &[f64]| Metric {
            better,
            corrected: Some(value),
            baselines: baselines.iter().copied().map(Some).collect(),
            ..Metric::default()
        };
        let wins = metric(Better::Lower, 1.0, &[2.0, 3.0]);
        let draws = metric(Better::Higher, 2.0, &[2.0, f64::NAN]);
        let unknown = metric(Better::Higher, f64::NAN, &[0.1]);
        assert!(verdict(std::slice::from_ref(&wins)).contains("every row"));
        assert!(verdict(&[wins.clone(), draws, unknown]).starts_with("In 2 of 3 rows"));
    }
}
