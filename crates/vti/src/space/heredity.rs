//! Things that may be in only together with others: products of columns with the columns themselves.

use std::collections::{BTreeMap, HashMap};

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

/// Sets of up to so many parents are gone through one by one.
const MAX_LISTED: usize = 12;

/// So many sets at most.
const MAX_SETS: usize = 1 << 21;

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
        let roots: Vec<usize> = (0..self.parents.len()).filter(|&thing| self.parents[thing].is_empty()).collect();
        let kin = self.parents.iter().filter(|own| !own.is_empty()).cloned().collect();
        self.count(Linked { roots, kin }, &mut { MAX_SETS })
    }

    /// The same of some parents and children: those that hang together are counted by themselves.
    fn count(&self, all: Linked, sets: &mut usize) -> Result<Vec<f64>, SpaceError> {
        let groups = all.groups();
        let alone = groups.iter().filter(|group| group.kin.is_empty()).count();
        let mut logs = log_binomials(alone);
        for group in groups.into_iter().filter(|group| !group.kin.is_empty()) {
            logs = convolved(&logs, &self.count_group(&group, sets)?);
        }
        Ok(logs)
    }

    /// Given the parents that are in, the children that may be are in or out as they like. Of many parents the one with most
    /// children is in or out first, which leaves the others less linked.
    fn count_group(&self, group: &Linked, sets: &mut usize) -> Result<Vec<f64>, SpaceError> {
        let mut sizes = vec![Vec::new(); group.roots.len() + group.kin.len() + 1];
        if let Some(cases) = self.log_cases(group, sets)? {
            for (log_count, size, free) in cases {
                for (more, log_binomial) in log_binomials(free).into_iter().enumerate() {
                    sizes[size + more].push(log_count + log_binomial);
                }
            }
        } else {
            let root = group.most_needed();
            for is_in in [false, true] {
                let (rest, free) = group.given(root, is_in, self.strong);
                let logs = convolved(&self.count(rest, sets)?, &log_binomials(free));
                logs.into_iter().enumerate().for_each(|(size, log)| sizes[size + usize::from(is_in)].push(log));
            }
        }
        Ok(sizes.iter().map(|logs| log_sum_exp(logs)).collect())
    }

    /// In how many ways, by logarithm, so many parents can be in such that so many children may be; none if parents are too
    /// many to go through their sets.
    fn log_cases(&self, group: &Linked, sets: &mut usize) -> Result<Option<Vec<Case>>, SpaceError> {
        let (roots, kin) = (group.roots.len(), group.places());
        if let Some(singles) = all_pairs(&kin, roots) {
            let pairs = |count: usize| count * count.saturating_sub(1) / 2;
            let free = |size: usize| {
                singles * size + if self.strong { pairs(size) } else { pairs(roots) - pairs(roots - size) }
            };
            let cases = log_binomials(roots).into_iter().enumerate().map(|(size, log)| (log, size, free(size)));
            return Ok(Some(cases.collect()));
        }
        if roots > MAX_LISTED {
            return Ok(None);
        }
        *sets = sets.checked_sub(1 << roots).ok_or(SpaceError::Linked { found: self.linked() })?;
        let masks: Vec<u32> = kin.iter().map(|own| own.iter().fold(0, |mask, place| mask | 1 << place)).collect();
        let width = masks.len() + 1;
        let mut counts = vec![0u32; (roots + 1) * width];
        for set in 0..1u32 << roots {
            let may = |mask: &&u32| if self.strong { set & **mask == **mask } else { set & **mask != 0 };
            counts[set.count_ones() as usize * width + masks.iter().filter(may).count()] += 1;
        }
        let cases = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        Ok(Some(cases.map(|(place, &count)| (f64::from(count).ln(), place / width, place % width)).collect()))
    }

    /// How many things have children.
    fn linked(&self) -> usize {
        self.children.iter().filter(|own| !own.is_empty()).count()
    }
}

/// In how many ways, by logarithm, so many parents are in and so many children may be.
type Case = (f64, usize, usize);

/// Parents, and of each of their children those parents on which it depends still.
struct Linked {
    roots: Vec<usize>,
    kin: Vec<Vec<usize>>,
}

impl Linked {
    /// Parts that have nothing to do with each other.
    fn groups(self) -> Vec<Self> {
        let places: HashMap<usize, usize> = self.roots.iter().enumerate().map(|(place, &root)| (root, place)).collect();
        // The first parent that each is linked with, by merging.
        let mut heads: Vec<usize> = (0..self.roots.len()).collect();
        let head = |heads: &[usize], mut place: usize| {
            while heads[place] != place {
                place = heads[place];
            }
            place
        };
        for own in &self.kin {
            for pair in own.windows(2) {
                let [a, b] = [pair[0], pair[1]].map(|root| head(&heads, places[&root]));
                heads[a.max(b)] = a.min(b);
            }
        }
        let mut groups: BTreeMap<usize, Self> = BTreeMap::new();
        let empty = || Self { roots: Vec::new(), kin: Vec::new() };
        for (place, root) in self.roots.into_iter().enumerate() {
            groups.entry(head(&heads, place)).or_insert_with(empty).roots.push(root);
        }
        for own in self.kin {
            let place = head(&heads, places[&own[0]]);
            groups.entry(place).or_insert_with(empty).kin.push(own);
        }
        groups.into_values().collect()
    }

    /// Children by the places of their parents among the roots.
    fn places(&self) -> Vec<Vec<usize>> {
        let place = |parent: &usize| self.roots.iter().position(|root| root == parent).unwrap_or(0);
        self.kin.iter().map(|own| own.iter().map(place).collect()).collect()
    }

    /// The parent with most children.
    fn most_needed(&self) -> usize {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        self.kin.iter().flatten().for_each(|parent| *counts.entry(*parent).or_default() += 1);
        counts.into_iter().max_by_key(|(_, count)| *count).map_or(0, |(parent, _)| parent)
    }

    /// What is left when a parent is in or out, and how many children may be in whatever the others are.
    fn given(&self, root: usize, is_in: bool, strong: bool) -> (Self, usize) {
        let (mut kin, mut free) = (Vec::new(), 0);
        for own in &self.kin {
            let others: Vec<usize> = own.iter().copied().filter(|parent| *parent != root).collect();
            if others.len() == own.len() {
                kin.push(others);
            } else if is_in != strong || others.is_empty() {
                // One is enough, one is missing, or it was the last that counted.
                free += usize::from(is_in);
            } else {
                kin.push(others);
            }
        }
        (Self { roots: self.roots.iter().copied().filter(|other| *other != root).collect(), kin }, free)
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
    fn large_groups_are_counted_by_what_one_parent_leaves() {
        // A ring of 14 columns, each with its neighbour: 28 things; transfer matrices know the answer.
        let count = MAX_LISTED + 2;
        let ring = (0..count).map(|place| vec![place.min((place + 1) % count), place.max((place + 1) % count)]);
        let parents: Vec<Vec<usize>> = std::iter::repeat_n(vec![], count).chain(ring).collect();
        for (heredity, [[a, b], [c, d]]) in
            [(Heredity::Strong, [[1.0, 1.0], [1.0, 2.0]]), (Heredity::Weak, [[1.0, 2.0], [2.0, 2.0]])]
        {
            let space = Subsets::new(2 * count).unwrap().with_parents(parents.clone(), heredity).unwrap();
            let root = f64::sqrt((a - d) * (a - d) + 4.0 * b * c);
            let [high, low] = [0.5 * (a + d + root), 0.5 * (a + d - root)];
            let expected = (high.powi(count as i32) + low.powi(count as i32)).ln();
            assert!((space.log_count() - expected).abs() < 1e-9, "{heredity:?}: {} {expected}", space.log_count());
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
        // One column with all others: in or out, it leaves the others alone. 2⁴⁰ without it; with it each has a product as well.
        let star: Vec<Vec<usize>> =
            std::iter::repeat_n(vec![], 41).chain((1..41).map(|other| vec![0, other])).collect();
        for (heredity, without) in [(Heredity::Strong, 2f64.ln()), (Heredity::Weak, 3f64.ln())] {
            let space = Subsets::new(81).unwrap().with_parents(star.clone(), heredity).unwrap();
            let with = if heredity == Heredity::Strong { 3f64.ln() } else { 4f64.ln() };
            let expected = log_sum_exp(&[40.0 * without, 40.0 * with]);
            assert!((space.log_count() - expected).abs() < 1e-9, "{heredity:?}: {} {expected}", space.log_count());
        }
        // All but one of these pairs: too many sets to count.
        let mut most = parents(40);
        most.pop();
        let refused = Subsets::new(40 + 779).unwrap().with_parents(most, Heredity::Strong).unwrap_err();
        assert_eq!(refused, SpaceError::Linked { found: 40 });
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
