//! How the parameters of the leading model depend on each other.

use vti::answer::Found;

use super::{Content, corrected, models};
use crate::markup::escape;
use crate::plot::{Sample, pairs};

/// Parameters shown.
const MAX_PAIRED_PARAMETERS: usize = 6;

/// Draws shown.
const DRAWS: usize = 2000;

pub(super) fn section(content: &Content<'_>) -> Option<String> {
    // Hidden units mean nothing one by one.
    if matches!(&content.answer.found, Found::Dag(graphs) if graphs.coefficients.is_none()) {
        return None;
    }
    let (top, draws) = (content.answer.models.first()?, content.draws.as_ref()?);
    let samples = draws.samples;
    let model = samples.models.iter().position(|model| model.word == top.word)?;
    let active = &samples.models[model].active;
    // Slopes first: the intercept and the scale of the errors are there in every model.
    let mut parameters: Vec<usize> =
        (0..samples.names.len()).filter(|&place| active.get(place) == Some(&true)).collect();
    let comes_last =
        |name: &str| name == "intercept" || name == "sigma" || name == "size" || name.starts_with("sigma.");
    parameters.sort_by_key(|&parameter| comes_last(&samples.names[parameter]));
    parameters.truncate(MAX_PAIRED_PARAMETERS);
    let rows: Vec<usize> = (0..samples.len()).filter(|&row| samples.model[row] == model).collect();
    let rows: Vec<usize> = rows.iter().step_by(rows.len().div_ceil(DRAWS).max(1)).copied().collect();
    if parameters.is_empty() || rows.is_empty() {
        return None;
    }
    let total: f64 = rows.iter().map(|&row| draws.weights[row]).sum();
    let sample = Sample {
        draws: parameters.iter().map(|&parameter| draws.values(&rows, parameter)).collect(),
        weights: rows.iter().map(|&row| draws.weights[row] / total).collect(),
        ..Sample::default()
    };
    let names: Vec<String> = parameters.iter().map(|&parameter| samples.names[parameter].clone()).collect();
    let figure = pairs(&names, &[sample]);
    let guide = if names.len() > 1 {
        "densities on the diagonal; below it draws and the regions that hold \
         50 % and 90 % of them; above it correlations."
    } else {
        "the density."
    };
    let (corrected, parameters) =
        (corrected(content.versions), if names.len() > 1 { "Parameters" } else { "Its parameter" });
    Some(format!(
        "<h2>Leading model</h2><p class=\"caption\"><strong>{}</strong>. {parameters} given this model,{corrected} draws: {guide}</p><div class=\"scroll\">{}</div>",
        escape(&models::label(content.answer, top)),
        figure.inline("Pairs plot of the parameters of the leading model")
    ))
}
