//! The background: a polynomial whose coefficients have normal priors, so that they are integrated in closed form.

use super::Spectrum;

/// Polynomials that are orthogonal over the data, each with a mean square of 1 there: the first is 1, and the coefficients of the
/// others say how large they are in the units of the values.
#[derive(Clone, Debug)]
pub(super) struct Background {
    /// Values of each polynomial at the data, of unit length: one after another.
    pub(super) unit: Vec<Vec<f64>>,
    /// Where the places are brought between −1 and 1.
    centre: f64,
    half: f64,
    /// Each polynomial by the powers of the place brought there.
    powers: Vec<Vec<f64>>,
}

impl Background {
    /// Of degrees up to this.
    pub(super) fn new(spectrum: &Spectrum, degree: usize) -> Self {
        let (low, high) = spectrum.ends();
        let (centre, half) = (0.5 * (low + high), 0.5 * (high - low));
        let rows = spectrum.rows();
        let (mut unit, mut powers): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        for degree in 0..=degree {
            let mut column: Vec<f64> = spectrum.x().iter().map(|x| ((x - centre) / half).powi(degree as i32)).collect();
            let mut power = vec![0.0; degree + 1];
            power[degree] = 1.0;
            // Twice, so that rounding leaves nothing of those before.
            for (own, of) in unit.iter().zip(&powers).chain(unit.iter().zip(&powers)) {
                let share: f64 = column.iter().zip(own).map(|(a, b)| a * b).sum();
                column.iter_mut().zip(own).for_each(|(a, b)| *a -= share * b);
                power.iter_mut().zip(of).for_each(|(a, b)| *a -= share / (rows as f64).sqrt() * b);
            }
            let length = column.iter().map(|a| a * a).sum::<f64>().sqrt();
            column.iter_mut().for_each(|a| *a /= length);
            power.iter_mut().for_each(|a| *a *= (rows as f64).sqrt() / length);
            unit.push(column);
            powers.push(power);
        }
        Self { unit, centre, half, powers }
    }

    /// How many coefficients it has.
    pub(super) fn len(&self) -> usize {
        self.unit.len()
    }

    /// Its value at any place.
    pub(super) fn at(&self, coefficients: &[f64], x: f64) -> f64 {
        let x = (x - self.centre) / self.half;
        let polynomial = |powers: &Vec<f64>| powers.iter().rev().fold(0.0, |sum, power| sum * x + power);
        self.powers.iter().zip(coefficients).map(|(powers, coefficient)| coefficient * polynomial(powers)).sum()
    }
}
