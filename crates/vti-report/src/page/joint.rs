//! How the parameters of the leading model depend on each other.

use crate::input::Report;
use crate::markup::escape;
use crate::plot::{Sample, pairs};

/// Parameters shown.
const MAX_PAIRED_PARAMETERS: usize = 8;

pub(super) fn section(report: &Report) -> Option<String> {
    let joint = report.pairs.as_ref()?;
    let known = joint.names.len().min(joint.draws.len());
    let shown = known.min(MAX_PAIRED_PARAMETERS);
    if shown == 0 || joint.draws[..shown].iter().any(Vec::is_empty) {
        return None;
    }
    let sample = Sample { draws: joint.draws[..shown].to_vec(), weights: joint.weights.clone(), ..Sample::default() };
    let figure = pairs(&joint.names[..shown], &[sample]);
    let left_out =
        if known > shown { format!(" The first {shown} of its {known} parameters are shown.") } else { String::new() };
    let guide = if shown > 1 {
        "Parameters given this model, corrected draws: densities on the diagonal; below it draws and the regions that hold \
         50 % and 90 % of them; above it correlations."
    } else {
        "Density of its parameter given this model, corrected draws."
    };
    Some(format!(
        "<h2>Leading model</h2><p class=\"caption\"><strong>{}</strong>. {guide}{left_out}</p><div class=\"scroll\">{}</div>",
        escape(if joint.label.is_empty() { "(no terms)" } else { &joint.label }),
        figure.inline("Pairs plot of the parameters of the leading model")
    ))
}
