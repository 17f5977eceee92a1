//! Drawing words of symbols unit by unit gives what a full pass gives.

use vti::device::{Cpu, Device, ShortSlice};
use vti::models::{DigitInput, WordError, WordNet, WordNetSettings, WordPasses};
use vti::random::{Purpose, Stream};
use vti::simd::Real;
use vti::space::{ModelSpace, Restricted};

/// A network with random weights everywhere its masks allow.
fn network<T: Real>(arities: &[u16], settings: &WordNetSettings) -> (WordNet, Vec<T>) {
    let words = WordNet::new(arities, settings).unwrap();
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
    words: &WordNet,
    parameters: &[T],
    arities: &[u16],
    rows: usize,
    threads: usize,
) -> (Vec<u16>, Vec<T>, Vec<T>)
where
    Cpu<T>: Device<Real = T>,
{
    let device = Cpu::<T>::new(threads).unwrap();
    let mut buffer = device.buffer(parameters.len()).unwrap();
    device.write(parameters, &mut buffer).unwrap();
    let mut work = words.workspace(&device, rows, WordPasses::Evaluation).unwrap();
    let mut stream = Stream::new(8, Purpose::Models, 0, 0);
    let uniforms: Vec<T> = (0..rows * arities.len()).map(|_| T::from_f64(stream.uniform())).collect();
    work.write_uniforms(&device, &uniforms).unwrap();
    words.sample(&device, &buffer, &mut work, None).unwrap();
    let (mut drawn, mut log_prob) = (vec![0; rows * arities.len()], vec![T::ZERO; rows]);
    let mut logits = vec![T::ZERO; rows * logit_count(words)];
    work.read_words(&device, &mut drawn, &mut log_prob).unwrap();
    work.read_logits(&device, &mut logits).unwrap();
    (drawn, log_prob, logits)
}

fn logit_count(words: &WordNet) -> usize {
    words.tensors().iter().find(|tensor| tensor.name == "output.bias").unwrap().range().len()
}

/// Log probabilities and logits of known words by one pass through the whole network.
fn full_pass<T: Real>(words: &WordNet, parameters: &[T], known: &[u16], rows: usize) -> (Vec<T>, Vec<T>)
where
    Cpu<T>: Device<Real = T>,
{
    let device = Cpu::<T>::single();
    let mut buffer = device.buffer(parameters.len()).unwrap();
    device.write(parameters, &mut buffer).unwrap();
    let mut work = words.workspace(&device, rows, WordPasses::Evaluation).unwrap();
    work.write_words(&device, known).unwrap();
    words.log_prob(&device, &buffer, &mut work, None).unwrap();
    let (mut log_prob, mut logits) = (vec![T::ZERO; rows], vec![T::ZERO; rows * logit_count(words)]);
    work.read_log_prob(&device, &mut log_prob).unwrap();
    work.read_logits(&device, &mut logits).unwrap();
    (log_prob, logits)
}

fn bits<T: Real>(values: &[T]) -> Vec<u64> {
    values.iter().map(|x| x.to_f64().to_bits()).collect()
}

#[test]
fn unit_by_unit_every_symbol_is_drawn_from_the_logits_of_a_full_pass() {
    fn law<T: Real>()
    where
        Cpu<T>: Device<Real = T>,
    {
        let bits54 = vec![2; 54];
        // A DAG of 6 nodes: Lehmer digits, then edge bits.
        let dag: Vec<u16> = [6, 5, 4, 3, 2].into_iter().chain(vec![2; 15]).collect();
        use DigitInput::{OneHot, Scaled};
        for (arities, hidden, blocks, digits) in
            [(&bits54, 128, 6, OneHot), (&dag, 40, 2, OneHot), (&dag, 40, 2, Scaled), (&dag, 7, 0, OneHot)]
        {
            let (words, parameters) = network::<T>(arities, &WordNetSettings { hidden, blocks, digits });
            let drawn = draw(&words, &parameters, arities, 150, 1);
            let full = full_pass(&words, &parameters, &drawn.0, 150);
            for threads in [1, 2] {
                let fast = draw(&words, &parameters, arities, 150, threads);
                assert_eq!(fast.0, drawn.0);
                assert_eq!(bits(&fast.1), bits(&full.0));
                assert_eq!(bits(&fast.2), bits(&full.1));
            }
            let distinct: std::collections::HashSet<_> = drawn.0.chunks(arities.len()).collect();
            assert!(distinct.len() > 100, "words differ");
        }
    }
    law::<f32>();
    law::<f64>();
}

#[test]
fn log_probabilities_follow_from_the_logits() {
    let arities: Vec<u16> = vec![4, 2, 3, 2];
    let (words, parameters) =
        network::<f64>(&arities, &WordNetSettings { hidden: 12, blocks: 1, ..WordNetSettings::default() });
    let (drawn, log_prob, logits) = draw(&words, &parameters, &arities, 300, 1);
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

/// Log probabilities of known words, and the gradient of their weighted sum.
fn evaluate(
    words: &WordNet,
    parameters: &[f64],
    rules: Option<&dyn ModelSpace>,
    known: &[u16],
    weights: &[f64],
    threads: usize,
) -> (Vec<f64>, Vec<f64>) {
    let device = Cpu::<f64>::new(threads).unwrap();
    let (mut buffer, mut gradient) =
        (device.buffer(parameters.len()).unwrap(), device.buffer(parameters.len()).unwrap());
    device.write(parameters, &mut buffer).unwrap();
    let mut work = words.workspace(&device, weights.len(), WordPasses::Training).unwrap();
    work.write_words(&device, known).unwrap();
    words.log_prob(&device, &buffer, &mut work, rules).unwrap();
    let (mut log_prob, mut found) = (vec![0.0; weights.len()], vec![0.0; parameters.len()]);
    work.read_log_prob(&device, &mut log_prob).unwrap();
    words.backward(&device, &buffer, &mut work, weights, &mut gradient).unwrap();
    device.read(&gradient, &mut found).unwrap();
    (log_prob, found)
}

#[test]
fn known_words_have_the_log_probabilities_with_which_they_were_drawn() {
    let arities: Vec<u16> = vec![4, 2, 3, 2, 2];
    for digits in [DigitInput::OneHot, DigitInput::Scaled] {
        let (words, parameters) = network::<f64>(&arities, &WordNetSettings { hidden: 15, blocks: 2, digits });
        let (drawn, log_prob, _) = draw(&words, &parameters, &arities, 200, 2);
        let (again, _) = evaluate(&words, &parameters, None, &drawn, &[0.0; 200], 2);
        assert_eq!(bits(&again), bits(&log_prob));
    }
}

#[test]
fn gradients_of_log_probabilities_agree_with_central_differences() {
    let arities: Vec<u16> = vec![4, 2, 3, 2, 2];
    // At most three symbols that are not 0.
    let few = Restricted::new(Words(arities.clone()), |word| word.iter().filter(|&&s| s > 0).count() <= 3).unwrap();
    for (digits, rules) in [(DigitInput::OneHot, None), (DigitInput::Scaled, Some(&few as &dyn ModelSpace))] {
        let (words, parameters) = network::<f64>(&arities, &WordNetSettings { hidden: 15, blocks: 2, digits });
        let known: Vec<u16> = [[3, 0, 2, 0, 1], [0, 1, 1, 0, 0], [1, 1, 0, 1, 0], [0, 0, 0, 0, 0]].concat();
        let weights = [0.7, -1.3, 0.4, 2.0];
        let (_, found) = evaluate(&words, &parameters, rules, &known, &weights, 1);
        let value = |parameters: &[f64]| {
            let (log_prob, _) = evaluate(&words, parameters, rules, &known, &weights, 1);
            log_prob.iter().zip(weights).map(|(l, w)| l * w).sum::<f64>()
        };
        let mut nonzero = 0;
        for index in 0..parameters.len() {
            let step = 1e-6;
            let moved = |by: f64| {
                let mut moved = parameters.clone();
                moved[index] += by;
                value(&moved)
            };
            let numeric = (moved(step) - moved(-step)) / (2.0 * step);
            // Weights outside the masks have no gradient, though moving them would change something.
            if found[index] != 0.0 {
                nonzero += 1;
                assert!((numeric - found[index]).abs() < 1e-7, "{index}: {numeric} ≠ {}", found[index]);
            }
        }
        assert!(nonzero > parameters.len() / 4, "{nonzero}");
    }
}

#[test]
fn gradients_do_not_depend_on_threads_and_add_up_over_lanes() {
    let arities: Vec<u16> = vec![3, 2, 2];
    let (words, parameters) = network::<f64>(&arities, &WordNetSettings { hidden: 9, ..WordNetSettings::default() });
    let rows = 1300;
    let (drawn, ..) = draw(&words, &parameters, &arities, rows, 1);
    let mut stream = Stream::new(3, Purpose::Other(1), 0, 0);
    let weights: Vec<f64> = (0..rows).map(|_| stream.normal()).collect();
    let (_, whole) = evaluate(&words, &parameters, None, &drawn, &weights, 1);
    assert_eq!(bits(&whole), bits(&evaluate(&words, &parameters, None, &drawn, &weights, 3).1));
    let mut sum = vec![0.0; whole.len()];
    for (drawn, weights) in drawn.chunks(3 * 100).zip(weights.chunks(100)) {
        let (_, part) = evaluate(&words, &parameters, None, drawn, weights, 1);
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    assert!(sum.iter().zip(&whole).all(|(a, b)| (a - b).abs() < 1e-10));
}

#[test]
fn forbidden_words_have_probability_zero_and_never_appear() {
    let arities: Vec<u16> = vec![3, 2, 4, 2, 2];
    let space =
        Restricted::new(Words(arities.clone()), |word| (word.iter().sum::<u16>() * 7 + word[2]) % 3 == 1).unwrap();
    let (words, parameters) = network::<f64>(&arities, &WordNetSettings { hidden: 20, ..WordNetSettings::default() });
    let all: Vec<u16> = (0..96u16).flat_map(|n| [n / 32, n / 16 % 2, n / 4 % 4, n / 2 % 2, n % 2]).collect();
    let (log_prob, _) = evaluate(&words, &parameters, Some(&space), &all, &[0.0; 96], 1);
    let mut total = 0.0;
    for (word, &log_prob) in all.chunks(5).zip(&log_prob) {
        assert_eq!(log_prob == f64::NEG_INFINITY, !space.is_allowed(word), "{word:?}: {log_prob}");
        total += log_prob.exp();
    }
    assert!((total - 1.0).abs() < 1e-12, "{total}");
    let device = Cpu::<f32>::single();
    let mut buffer = device.buffer(parameters.len()).unwrap();
    device.write(&parameters.iter().map(|&x| x as f32).collect::<Vec<_>>(), &mut buffer).unwrap();
    let rows = 3000;
    let mut work = words.workspace(&device, rows, WordPasses::Evaluation).unwrap();
    let mut stream = Stream::new(5, Purpose::Models, 0, 0);
    // With the extremes of the unit interval among the uniform numbers.
    let extremes = [0.0, 1.0 - f32::EPSILON, 0.5];
    let mut uniform = |i: usize| if i < 1500 { extremes[i * i % 3] } else { stream.uniform() as f32 * 0.999_999 };
    work.write_uniforms(&device, &(0..rows * 5).map(&mut uniform).collect::<Vec<_>>()).unwrap();
    words.sample(&device, &buffer, &mut work, Some(&space)).unwrap();
    let (mut drawn, mut log_prob) = (vec![0; rows * 5], vec![0.0; rows]);
    work.read_words(&device, &mut drawn, &mut log_prob).unwrap();
    assert!(drawn.chunks(5).all(|word| space.is_allowed(word)));
    let distinct: std::collections::HashSet<_> = drawn.chunks(5).collect();
    assert!(distinct.len() > 20);
}

/// All words of some arities.
struct Words(Vec<u16>);

impl ModelSpace for Words {
    fn arities(&self) -> &[u16] {
        &self.0
    }
    fn max_dim(&self) -> usize {
        0
    }
    fn mark_active(&self, _: &[u16], _: &mut [bool]) {}
}

#[test]
fn frequencies_follow_the_probabilities() {
    let arities: Vec<u16> = vec![3, 2, 2];
    let (words, parameters) =
        network::<f64>(&arities, &WordNetSettings { hidden: 9, blocks: 1, ..WordNetSettings::default() });
    let rows = 40_000;
    let (drawn, log_prob, _) = draw(&words, &parameters, &arities, rows, 2);
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
    let settings = WordNetSettings::default();
    assert_eq!(WordNet::new(&[2, 1], &settings).unwrap_err(), WordError::Arity { variable: 1, arity: 1 });
    let none = WordNetSettings { hidden: 0, ..WordNetSettings::default() };
    assert_eq!(WordNet::new(&[2], &none).unwrap_err(), WordError::NoHidden);
    let device = Cpu::<f64>::single();
    let mut work = WordNet::new(&[2, 3], &settings).unwrap().workspace(&device, 2, WordPasses::Evaluation).unwrap();
    let short = WordError::Length(ShortSlice { what: "uniforms", found: 3, expected: 4 });
    assert_eq!(work.write_uniforms(&device, &[0.0; 3]).unwrap_err(), short);
    assert!(work.read_words(&device, &mut [0; 4], &mut [0.0; 1]).is_err());
    assert!(work.read_logits(&device, &mut [0.0; 7]).is_err());
    let other = WordNet::new(&[3, 2], &settings).unwrap();
    assert_eq!(
        other.sample(&device, &device.buffer(other.parameter_count()).unwrap(), &mut work, None),
        Err(WordError::Other)
    );
    let mut work = other.workspace(&device, 2, WordPasses::Evaluation).unwrap();
    assert_eq!(other.sample(&device, &device.buffer(3).unwrap(), &mut work, None), Err(WordError::Other));
}
