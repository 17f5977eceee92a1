//! Drawing words of symbols unit by unit gives what a full pass per symbol gives.

#![allow(missing_docs, clippy::unwrap_used)]

use vti::engine::{CpuEngine, Engine, Real, ShortSlice};
use vti::models::{Autoregressive, AutoregressiveSettings, WordError};
use vti::random::{Purpose, Stream};

/// A network with random weights everywhere its masks allow.
fn network<T: Real>(arities: &[u16], settings: &AutoregressiveSettings) -> (Autoregressive, Vec<T>) {
    let words = Autoregressive::new(arities, settings).unwrap();
    let mut parameters = words.initial_parameters::<T>(4);
    let (variables, hidden) = (arities.len(), settings.hidden);
    let degree = |unit: usize| unit * variables / hidden;
    let variable_of: Vec<usize> =
        arities.iter().enumerate().flat_map(|(v, &a)| vec![v; if a == 2 { 1 } else { usize::from(a) }]).collect();
    let mut stream = Stream::new(4, Purpose::Other(0), 0, 0);
    // The last layer starts at zero; without weights there nothing would depend on anything.
    let output = words.tensors().iter().find(|t| t.name == "output.weight").unwrap();
    for place in output.range() {
        let (row, column) = ((place - output.offset) / hidden, (place - output.offset) % hidden);
        if degree(column) <= variable_of[row] {
            parameters[place] = T::from_f64(0.5 * stream.normal());
        }
    }
    (words, parameters)
}

fn draw<T: Real>(
    words: &Autoregressive,
    parameters: &[T],
    arities: &[u16],
    rows: usize,
    incremental: bool,
    threads: usize,
) -> (Vec<u16>, Vec<T>, Vec<T>) {
    let engine = CpuEngine::<T>::new(threads).unwrap();
    let mut buffer = engine.buffer(parameters.len());
    engine.write(parameters, &mut buffer);
    let mut work = words.workspace(&engine, rows);
    let mut stream = Stream::new(8, Purpose::Models, 0, 0);
    let uniforms: Vec<T> = (0..rows * arities.len()).map(|_| T::from_f64(stream.uniform())).collect();
    work.write_uniforms(&engine, &uniforms).unwrap();
    if incremental {
        words.sample(&engine, &buffer, &mut work).unwrap();
    } else {
        words.sample_by_full_passes(&engine, &buffer, &mut work).unwrap();
    }
    let logits: usize = arities.iter().map(|&a| if a == 2 { 1 } else { usize::from(a) }).sum();
    let (mut drawn, mut log_prob) = (vec![0; rows * arities.len()], vec![T::ZERO; rows]);
    let mut found = vec![T::ZERO; rows * logits];
    work.read_words(&engine, &mut drawn, &mut log_prob).unwrap();
    work.read_logits(&engine, &mut found).unwrap();
    (drawn, log_prob, found)
}

fn bits<T: Real>(values: &[T]) -> Vec<u64> {
    values.iter().map(|x| x.to_f64().to_bits()).collect()
}

#[test]
fn incremental_sampling_is_bit_identical_to_full_passes() {
    fn law<T: Real>() {
        let bits54 = vec![2; 54];
        // A DAG of 6 nodes: Lehmer digits, then edge bits.
        let dag: Vec<u16> = [6, 5, 4, 3, 2].into_iter().chain(vec![2; 15]).collect();
        for (arities, hidden, blocks) in [(&bits54, 128, 6), (&dag, 40, 2), (&dag, 7, 0)] {
            let (words, parameters) = network::<T>(arities, &AutoregressiveSettings { hidden, blocks });
            let slow = draw(&words, &parameters, arities, 150, false, 1);
            for threads in [1, 2] {
                let fast = draw(&words, &parameters, arities, 150, true, threads);
                assert_eq!(fast.0, slow.0);
                assert_eq!(bits(&fast.1), bits(&slow.1));
                assert_eq!(bits(&fast.2), bits(&slow.2));
            }
            let distinct: std::collections::HashSet<_> = slow.0.chunks(arities.len()).collect();
            assert!(distinct.len() > 100, "words differ");
        }
    }
    law::<f32>();
    law::<f64>();
}

#[test]
fn log_probabilities_follow_from_the_logits() {
    let arities: Vec<u16> = vec![4, 2, 3, 2];
    let (words, parameters) = network::<f64>(&arities, &AutoregressiveSettings { hidden: 12, blocks: 1 });
    let (drawn, log_prob, logits) = draw(&words, &parameters, &arities, 300, true, 1);
    for row in 0..300 {
        let logits = &logits[row * 9..][..9];
        let bit = |logit: f64, one: bool| -(1.0 + if one { (-logit).exp() } else { logit.exp() }).ln();
        let digit = |logits: &[f64], symbol: usize| logits[symbol] - logits.iter().map(|l| l.exp()).sum::<f64>().ln();
        let word = &drawn[row * 4..][..4];
        let truth = digit(&logits[..4], usize::from(word[0]))
            + bit(logits[4], word[1] == 1)
            + digit(&logits[5..8], usize::from(word[2]))
            + bit(logits[8], word[3] == 1);
        assert!((log_prob[row] - truth).abs() < 1e-12);
    }
}

#[test]
fn frequencies_follow_the_probabilities() {
    let arities: Vec<u16> = vec![3, 2, 2];
    let (words, parameters) = network::<f64>(&arities, &AutoregressiveSettings { hidden: 9, blocks: 1 });
    let rows = 40_000;
    let (drawn, log_prob, _) = draw(&words, &parameters, &arities, rows, true, 2);
    let mut counts = std::collections::HashMap::new();
    for (word, &log_prob) in drawn.chunks(3).zip(&log_prob) {
        counts.entry(word.to_vec()).or_insert((0.0, log_prob.exp())).0 += 1.0;
    }
    let total: f64 = counts.values().map(|(_, p)| p).sum();
    assert!(counts.len() == 12 && (total - 1.0).abs() < 1e-9, "all 12 words appear and their probabilities sum to 1");
    for (word, (count, p)) in counts {
        let error = (p * (1.0 - p) / rows as f64).sqrt();
        assert!((count / rows as f64 - p).abs() < 5.0 * error, "{word:?}");
    }
}

#[test]
fn impossible_words_are_refused() {
    let settings = AutoregressiveSettings::default();
    assert_eq!(Autoregressive::new(&[2, 1], &settings).unwrap_err(), WordError::Arity { variable: 1, arity: 1 });
    let none = AutoregressiveSettings { hidden: 0, blocks: 1 };
    assert_eq!(Autoregressive::new(&[2], &none).unwrap_err(), WordError::NoHidden);
    let engine = CpuEngine::<f64>::single();
    let mut work = Autoregressive::new(&[2, 3], &settings).unwrap().workspace(&engine, 2);
    let short = WordError::Length(ShortSlice { what: "uniforms", found: 3, expected: 4 });
    assert_eq!(work.write_uniforms(&engine, &[0.0; 3]).unwrap_err(), short);
    assert!(work.read_words(&engine, &mut [0; 4], &mut [0.0; 1]).is_err());
    assert!(work.read_logits(&engine, &mut [0.0; 7]).is_err());
    let other = Autoregressive::new(&[3, 2], &settings).unwrap();
    assert_eq!(other.sample(&engine, &engine.buffer(other.parameter_count()), &mut work), Err(WordError::Other));
    let mut work = other.workspace(&engine, 2);
    assert_eq!(other.sample(&engine, &engine.buffer(3), &mut work), Err(WordError::Other));
}
