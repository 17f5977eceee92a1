//! Things that may be in only together with others: products of columns with the columns themselves.

use serde::{Deserialize, Serialize};

use super::SpaceError;
use crate::stats::log_sum_exp;

/// When a thing that has parents may be in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heredity {
    /// Whether its parents are or not.
    None,
    /// With at least one of its parents.
    Weak,
    /// With all of its parents.
    #[default]
    Strong,
}

/// Which things need which others.
#[derive(Clone, Debug)]
pub(super) struct Descent {
    /// Of each thing; empty for most.
    parents: Vec<Vec<usize>>,
    children: Vec<Vec<usize>>,
    /// All of them, not just one.
    strong: bool,
}

/// Parents of a group of things that hang together are counted set by set up to so many.
const MAX_LINKED: usize = 20;

impl Descent {
    /// Checks that parents come first and have none themselves.
    pub(super) fn new(parents: Vec<Vec<usize>>, things: usize, strong: bool) -> Result<Self, SpaceError> {
        if parents.len() != things {
            return Err(SpaceError::Names { found: parents.len(), expected: things });
        }
        let mut children = vec![Vec::new(); things];
        for (thing, own) in parents.iter().enumerate() {
            for &parent in own {
                if parent >= thing || !parents[parent].is_empty() {
                    return Err(SpaceError::Parent { thing, parent });
                }
                children[parent].push(thing);
            }
        }
        Ok(Self { parents, children, strong })
    }

    /// Whether a thing may be in, given which of those before it are.
    pub(super) fn may_be_in(&self, thing: usize, word: &[u16]) -> bool {
        let own = &self.parents[thing];
        let is_in = |parent: &usize| word[*parent] != 0;
        own.is_empty() || if self.strong { own.iter().all(is_in) } else { own.iter().any(is_in) }
    }

    /// Whether a thing that is in may go: nothing that is in needs it.
    pub(super) fn may_be_out(&self, thing: usize, word: &[u16]) -> bool {
        self.children[thing].iter().all(|&child| {
            let others = || self.parents[child].iter().filter(|&&parent| parent != thing);
            word[child] == 0 || !self.strong && others().any(|&parent| word[parent] != 0)
        })
    }

    /// Logarithms of the numbers of sets of each size, from none to all.
    pub(super) fn log_sizes(&self) -> Result<Vec<f64>, SpaceError> {
        let groups = self.groups();
        let alone = groups.iter().filter(|group| group.len() == 1).count();
        let mut all = log_binomials(alone);
        for group in groups.iter().filter(|group| group.len() > 1) {
            all = convolved(&all, &self.log_sizes_of(group)?);
        }
        Ok(all)
    }

    /// Things that hang together, by parents and children.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.parents.len()];
        let mut groups = Vec::new();
        for first in 0..self.parents.len() {
            let (mut group, mut waiting) = (Vec::new(), vec![first]);
            while let Some(thing) = waiting.pop() {
                if !std::mem::replace(&mut seen[thing], true) {
                    group.push(thing);
                    waiting.extend(self.parents[thing].iter().chain(&self.children[thing]));
                }
            }
            group.sort_unstable();
            groups.extend(Some(group).filter(|group| !group.is_empty()));
        }
        groups
    }

    /// The same of a group: given the parents that are in, the children that may be are in or out as they like.
    fn log_sizes_of(&self, group: &[usize]) -> Result<Vec<f64>, SpaceError> {
        let (children, roots): (Vec<usize>, Vec<usize>) =
            group.iter().partition(|&&thing| !self.parents[thing].is_empty());
        let place = |parent: &usize| roots.binary_search(parent).unwrap_or(0);
        let kin: Vec<Vec<usize>> =
            children.iter().map(|&child| self.parents[child].iter().map(place).collect()).collect();
        let mut sizes = vec![Vec::new(); group.len() + 1];
        for (log_count, size, free) in self.log_cases(&kin, roots.len())? {
            for (more, log_binomial) in log_binomials(free).into_iter().enumerate() {
                sizes[size + more].push(log_count + log_binomial);
            }
        }
        Ok(sizes.iter().map(|logs| log_sum_exp(logs)).collect())
    }

    /// In how many ways, by logarithm, so many parents can be in such that so many children may be.
    fn log_cases(&self, kin: &[Vec<usize>], roots: usize) -> Result<Vec<(f64, usize, usize)>, SpaceError> {
        if let Some(singles) = all_pairs(kin, roots) {
            let pairs = |count: usize| count * count.saturating_sub(1) / 2;
            let free = |size: usize| {
                singles * size + if self.strong { pairs(size) } else { pairs(roots) - pairs(roots - size) }
            };
            return Ok(log_binomials(roots)
                .into_iter()
                .enumerate()
                .map(|(size, log)| (log, size, free(size)))
                .collect());
        }
        if roots > MAX_LINKED {
            return Err(SpaceError::Linked { found: roots, most: MAX_LINKED });
        }
        let masks: Vec<u32> = kin.iter().map(|own| own.iter().fold(0, |mask, place| mask | 1 << place)).collect();
        let mut counts = vec![0u32; (roots + 1) * (masks.len() + 1)];
        for set in 0..1u32 << roots {
            let may = |mask: &&u32| if self.strong { set & **mask == **mask } else { set & **mask != 0 };
            let free = masks.iter().filter(may).count();
            counts[set.count_ones() as usize * (masks.len() + 1) + free] += 1;
        }
        let cases = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        Ok(cases
            .map(|(place, &count)| (f64::from(count).ln(), place / (masks.len() + 1), place % (masks.len() + 1)))
            .collect())
    }
}

/// Whether every pair of parents has one child, and how many each has of its own, if all have as many.
fn all_pairs(kin: &[Vec<usize>], roots: usize) -> Option<usize> {
    let mut of_one = vec![0; roots];
    let mut of_two = std::collections::HashSet::new();
    for own in kin {
        match own[..] {
            [one] => of_one[one] += 1,
            [a, b] if of_two.insert((a.min(b), a.max(b))) => {}
            _ => return None,
        }
    }
    let singles = of_one.first().copied().unwrap_or(0);
    (of_two.len() == roots * roots.saturating_sub(1) / 2 && of_one.iter().all(|&own| own == singles)).then_some(singles)
}

/// `ln C(n, k)` for k from 0 to n.
pub(super) fn log_binomials(n: usize) -> Vec<f64> {
    let next = |log: &mut f64, k: usize| {
        let here = *log;
        *log += ((n - k) as f64 / (k + 1) as f64).ln();
        Some(here)
    };
    (0..=n).scan(0.0, next).collect()
}

/// Logarithms of the coefficients of the product of two polynomials.
fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sums = vec![Vec::new(); a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        b.iter().enumerate().for_each(|(j, y)| sums[i + j].push(x + y));
    }
    sums.iter().map(|logs| log_sum_exp(logs)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{ModelSpace, Subsets};
    use super::*;
    use crate::random::{Purpose, Stream};

    /// Four columns, one of them alone, with products: either some, or all pairs and squares of the first three.
    fn spaces() -> Vec<Subsets> {
        let some = vec![vec![], vec![], vec![], vec![], vec![0, 1], vec![1, 2], vec![0]];
        let all = vec![vec![], vec![], vec![], vec![], vec![0, 1], vec![0, 2], vec![1, 2], vec![0], vec![1], vec![2]];
        let space = |parents: &Vec<Vec<usize>>, heredity| {
            Subsets::with_always(parents.len(), 1).unwrap().with_parents(parents.clone(), heredity).unwrap()
        };
        [&some, &all].iter().flat_map(|parents| [Heredity::Weak, Heredity::Strong].map(|h| space(parents, h))).collect()
    }

    fn words(things: usize) -> impl Iterator<Item = Vec<u16>> {
        (0..1u32 << things).map(move |number| (0..things).map(|thing| (number >> thing & 1) as u16).collect())
    }

    #[test]
    fn sets_are_counted_by_size() {
        for space in spaces() {
            let mut counts = vec![0.0; space.things() + 1];
            for word in words(space.things()).filter(|word| space.is_allowed(word)) {
                counts[word.iter().sum::<u16>() as usize] += 1.0;
            }
            let found: Vec<f64> = space.log_sizes().iter().map(|log| log.exp()).collect();
            assert!(found.iter().zip(&counts).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} {counts:?}");
            assert!((space.log_count().exp() - counts.iter().sum::<f64>()).abs() < 1e-9);
        }
    }

    #[test]
    fn children_need_their_parents() {
        let [weak, strong] = [Heredity::Weak, Heredity::Strong]
            .map(|heredity| Subsets::new(3).unwrap().with_parents(vec![vec![], vec![], vec![0, 1]], heredity).unwrap());
        assert!(weak.is_allowed(&[0, 1, 1]) && !weak.is_allowed(&[0, 0, 1]));
        assert!(strong.is_allowed(&[1, 1, 1]) && !strong.is_allowed(&[0, 1, 1]));
        // Without heredity nothing is forbidden, and a large table of all pairs is counted by formula.
        let free = Subsets::new(3).unwrap().with_parents(vec![vec![], vec![], vec![0, 1]], Heredity::None).unwrap();
        assert!(!free.is_constrained() && free.is_allowed(&[0, 0, 1]));
        let pairs = |n: usize| (0..n).flat_map(move |a| (0..a).map(move |b| vec![b, a]));
        let parents = |n: usize| std::iter::repeat_n(vec![], n).chain(pairs(n)).collect::<Vec<_>>();
        let large = Subsets::new(40 + 780).unwrap().with_parents(parents(40), Heredity::Strong).unwrap();
        assert!(large.log_count() > 780.0 * 2f64.ln() && large.log_count() < 781.0 * 2f64.ln());
        // All but one of these pairs: too many sets to count.
        let mut most = parents(40);
        most.pop();
        let refused = Subsets::new(40 + 779).unwrap().with_parents(most, Heredity::Strong).unwrap_err();
        assert_eq!(refused, SpaceError::Linked { found: 40, most: MAX_LINKED });
        let later = Subsets::new(2).unwrap().with_parents(vec![vec![1], vec![]], Heredity::Weak).unwrap_err();
        assert_eq!(later, SpaceError::Parent { thing: 0, parent: 1 });
    }

    #[test]
    fn neighbours_are_allowed_and_ways_back_are_weighed() {
        for space in spaces() {
            let things = space.things();
            let number = |word: &[u16]| word.iter().enumerate().map(|(i, bit)| usize::from(*bit) << i).sum::<usize>();
            let allowed: Vec<bool> = words(things).map(|word| space.is_allowed(&word)).collect();
            let mut stream = Stream::new(3, Purpose::Other(0), 0, 0);
            // Metropolis' rule with these proposals keeps the uniform distribution over all allowed sets.
            let (mut word, mut visits) = (vec![0; things], vec![0.0; 1 << things]);
            let steps = 400_000;
            for _ in 0..steps {
                let mut next = word.clone();
                let log_ratio = space.propose(&mut next, &mut stream);
                if space.is_allowed(&next) && stream.uniform().ln() < log_ratio {
                    word = next;
                }
                visits[number(&word)] += 1.0;
            }
            let count = allowed.iter().filter(|allowed| **allowed).count() as f64;
            for (visits, allowed) in visits.iter().zip(&allowed) {
                let expected = if *allowed { f64::from(steps) / count } else { 0.0 };
                // Visits in a row are of one set: a dozen times the variance of independent ones.
                assert!((visits - expected).abs() <= 5.0 * (12.0 * expected).sqrt(), "{visits} {expected}");
            }
        }
    }
}
