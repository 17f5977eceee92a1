//! Draws by model, and what weights say of each.

use std::collections::{HashMap, HashSet};

use super::CheckError;
use super::blocks::khat_of;
use super::correction::{Correction, ModelCorrection};
use crate::device::Device;
use crate::evidence::{Evidence, EvidenceMethod};
use crate::posterior::{Draws, Posterior};
use crate::space::Model;
use crate::stats::{self, Smoothed, Stratum};

/// Draws by model, where several words may mean one.
pub(super) struct Groups {
    models: Vec<Model>,
    /// Group of each draw.
    of_draw: Vec<usize>,
    /// Strata of each group that hold nothing else.
    own: Vec<Vec<usize>>,
    /// Where each stratum starts.
    starts: Vec<usize>,
    q: Vec<f64>,
}

impl Groups {
    pub(super) fn new<D: Device>(
        posterior: &Posterior<D>,
        draws: &Draws,
        words: &[(Option<Model>, f64)],
        ends: &[usize],
    ) -> Self {
        let space = posterior.family().space();
        let mut numbers: HashMap<Model, usize> = HashMap::new();
        let mut seen: HashSet<&[u16]> = HashSet::new();
        let mut groups =
            Self { models: Vec::new(), of_draw: Vec::new(), own: Vec::new(), starts: Vec::new(), q: Vec::new() };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        groups.starts = starts.take(ends.len()).collect();
        for (stratum, &end) in ends.iter().enumerate() {
            let mut last = None;
            for row in groups.starts[stratum]..end {
                let word = draws.word(row);
                // Neighbours mostly have one word: all draws of a stratum of its own do.
                let number = match last {
                    Some(number) if row > groups.starts[stratum] && draws.word(row - 1) == word => number,
                    _ => {
                        let mut canonical = word.to_vec();
                        space.canonical(&mut canonical);
                        let next = numbers.len();
                        *numbers.entry(Model::from(canonical)).or_insert_with_key(|model| {
                            groups.models.push(model.clone());
                            groups.own.push(Vec::new());
                            groups.q.push(0.0);
                            next
                        })
                    }
                };
                if seen.insert(word) {
                    groups.q[number] += draws.log_q_model[row].exp();
                }
                groups.of_draw.push(number);
                last = Some(number);
            }
            if let (Some((Some(_), _)), Some(number)) = (words.get(stratum), last) {
                groups.own[number].push(stratum);
            }
        }
        groups
    }

    /// Corrected probabilities of all groups, with evidence and k̂ of the leading ones.
    pub(super) fn correct<D: Device>(
        &self,
        posterior: &Posterior<D>,
        draws: &Draws,
        strata: &[Stratum<'_>],
        tails: &[Smoothed],
        leading: usize,
    ) -> Result<Correction, CheckError> {
        let space = posterior.family().space();
        let mut counts = vec![0; self.models.len()];
        self.of_draw.iter().for_each(|&group| counts[group] += 1);
        let shares =
            stats::shares(strata, self.models.len(), |stratum, draw| self.of_draw[self.starts[stratum] + draw])?;
        let models = self.models.iter().enumerate().map(|(group, model)| ModelCorrection {
            model: model.clone(),
            label: space.label(model),
            q: self.q[group],
            corrected: shares[group],
            evidence: None,
            khat: None,
            draws: counts[group],
        });
        let mut correction = Correction::estimated(models.collect());
        let numbers: HashMap<&Model, usize> = self.models.iter().zip(0..).collect();
        for model in correction.models.iter_mut().take(leading) {
            let group = numbers[&model.model];
            // Evidence and k̂ of one model need draws of that model only: those of its largest stratum.
            let largest = self.own[group].iter().copied().max_by_key(|&stratum| strata[stratum].log_weights.len());
            if let Some(stratum) = largest {
                model.khat = khat_of(strata[stratum].log_weights, tails[stratum].khat);
                let log_prior = posterior.problem().log_prior(draws.word(self.starts[stratum]));
                // A stratum whose draws all have weight 0 says nothing.
                model.evidence = stats::log_total(&strata[stratum..=stratum]).ok().map(|total| Evidence {
                    log_evidence: total.value - log_prior,
                    se: total.se,
                    method: EvidenceMethod::Importance,
                    calls: strata[stratum].log_weights.len(),
                });
            }
        }
        Ok(correction)
    }
}
