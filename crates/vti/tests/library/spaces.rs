//! Laws of spaces of models, over a table of them, and exact facts about single ones.

use std::collections::HashSet;
use std::sync::Arc;

use vti::graph::{Graph, GraphError};
use vti::random::{Purpose, Stream};
use vti::space::{
    Catalogue, Dags, EdgeRules, Model, ModelSpace, NodeParameters, OneOf, Product, Restricted, RulesError, SpaceError,
    Subsets,
};

/// Spaces of at most some thousand words, one of each kind and shape.
fn spaces() -> Vec<(&'static str, Box<dyn ModelSpace>)> {
    let subsets = |n| Subsets::new(n).unwrap();
    let few = || subsets(7).with_sizes(2..=4).unwrap();
    let dags = |n| Dags::new(n, 2).unwrap();
    let odd = |word: &[u16]| word.iter().sum::<u16>() % 2 == 1;
    let connected = |word: &[u16]| dags(3).feature_sum(word) > -5.0;
    vec![
        ("one of one", Box::new(OneOf::with_dims(&[3]).unwrap())),
        ("one of two", Box::new(OneOf::with_dims(&[0, 3]).unwrap())),
        ("one of some", Box::new(OneOf::new(6, vec![vec![5, 0], vec![], vec![1, 2, 3], vec![4]]).unwrap())),
        ("one of many", Box::new(OneOf::with_dims(&[2; 3000]).unwrap())),
        ("no things", Box::new(subsets(0))),
        ("subsets", Box::new(subsets(6))),
        ("subsets and always", Box::new(Subsets::with_always(5, 2).unwrap())),
        ("subsets of blocks", Box::new(Subsets::of_blocks(1, &[2, 0, 3]).unwrap())),
        ("subsets of some sizes", Box::new(few())),
        ("whole or nothing", Box::new(subsets(5).with_sizes(5..=5).unwrap())),
        ("pairs of many", Box::new(subsets(70).with_sizes(0..=2).unwrap())),
        ("one node", Box::new(dags(1))),
        ("two nodes", Box::new(dags(2))),
        ("four nodes", Box::new(dags(4))),
        ("product", Box::new(Product::new(dags(3), few()).unwrap())),
        ("product of products", {
            let inner = Product::new(few(), OneOf::with_dims(&[1, 2, 3]).unwrap()).unwrap();
            Box::new(Product::new(Arc::new(subsets(2)), Box::new(inner) as Box<dyn ModelSpace>).unwrap())
        }),
        ("restricted", Box::new(Restricted::new(subsets(8), odd).unwrap())),
        ("restricted twice", Box::new(Restricted::new(Restricted::new(few(), odd).unwrap(), |w| w[6] == 1).unwrap())),
        ("restricted graphs", Box::new(Restricted::new(dags(3), connected).unwrap())),
        (
            "one word of many",
            Box::new(Restricted::new(subsets(9), |word| word == [0, 1, 1, 0, 0, 1, 0, 1, 0]).unwrap()),
        ),
    ]
}

trait FeatureSum {
    fn feature_sum(&self, word: &[u16]) -> f64;
}

impl<S: ModelSpace> FeatureSum for S {
    fn feature_sum(&self, word: &[u16]) -> f64 {
        features(self, word).iter().sum()
    }
}

fn active(space: &dyn ModelSpace, word: &[u16]) -> Vec<bool> {
    let mut active = vec![false; space.max_dim()];
    space.mark_active(word, &mut active);
    active
}

fn features(space: &dyn ModelSpace, word: &[u16]) -> Vec<f64> {
    let mut features = vec![f64::NAN; space.feature_count()];
    space.features(word, &mut features);
    features
}

/// Calls a law with every space and its words, ascending.
fn for_each_space(law: impl Fn(&str, &dyn ModelSpace, &Catalogue, &[Model])) {
    for (name, space) in spaces() {
        let catalogue = Catalogue::new(&space, 10_000).unwrap();
        let words: Vec<Model> = (0..catalogue.len()).map(|index| catalogue.model(index).unwrap()).collect();
        law(name, &space, &catalogue, &words);
    }
}

#[test]
fn every_word_has_a_number_and_words_ascend() {
    for_each_space(|name, space, catalogue, words| {
        assert!(!words.is_empty(), "{name}");
        assert!(words.is_sorted_by(|a, b| a < b), "{name}");
        for (index, word) in words.iter().enumerate() {
            assert_eq!(catalogue.index(word), Some(index), "{name}");
            assert!(space.is_allowed(word), "{name}: {word}");
        }
    });
}

#[test]
fn words_are_as_many_as_the_space_says() {
    for_each_space(|name, space, _, words| {
        let count = words.len() as f64;
        assert!((space.log_count() - count.ln()).abs() < 1e-12 * (1.0 + count.ln()), "{name}");
        let all: f64 = space.arities().iter().map(|&arity| f64::from(arity).ln()).sum();
        assert_eq!(space.is_constrained(), all - count.ln() > 1e-9, "{name}");
    });
}

#[test]
fn a_prefix_may_be_continued_exactly_as_the_words_are() {
    for_each_space(|name, space, catalogue, words| {
        let n = space.arities().len();
        let prefixes: HashSet<&[u16]> = words.iter().flat_map(|word| (0..=n).map(|end| &word[..end])).collect();
        for prefix in prefixes.iter().filter(|prefix| prefix.len() < n) {
            let arity = space.arities()[prefix.len()];
            // Start from both values: the method overwrites.
            for before in [false, true] {
                let mut allowed = vec![before; arity.into()];
                space.allow(prefix, &mut allowed);
                for symbol in 0..arity {
                    let longer = [prefix, [symbol].as_slice()].concat();
                    assert_eq!(allowed[usize::from(symbol)], prefixes.contains(&longer[..]), "{name}: {longer:?}");
                    if longer.len() == n {
                        assert_eq!(space.is_allowed(&longer), catalogue.index(&longer).is_some(), "{name}: {longer:?}");
                    }
                }
            }
        }
    });
}

#[test]
fn words_outside_are_refused() {
    for_each_space(|name, space, catalogue, words| {
        let longer = [&words[0], [0].as_slice()].concat();
        assert!(matches!(space.check(&longer), Err(SpaceError::WordLength { .. })), "{name}");
        assert_eq!(catalogue.index(&longer), None);
        for (position, &arity) in space.arities().iter().enumerate() {
            let mut word = words[0].to_vec();
            word[position] = arity;
            assert_eq!(space.check(&word), Err(SpaceError::Symbol { position, symbol: arity, arity }), "{name}");
            assert_eq!(catalogue.index(&word), None);
        }
    });
    let space = Subsets::new(4).unwrap().with_sizes(1..=2).unwrap();
    assert_eq!(space.check(&[1, 1, 1, 0]), Err(SpaceError::Forbidden { position: 2, symbol: 1 }));
    assert_eq!(space.check(&[0, 0, 0, 0]), Err(SpaceError::Forbidden { position: 3, symbol: 0 }));
}

#[test]
fn active_coordinates_and_features_are_overwritten() {
    for_each_space(|name, space, _, words| {
        for word in words {
            let mut found = vec![true; space.max_dim()];
            space.mark_active(word, &mut found);
            assert_eq!(found, active(space, word), "{name}: {word}");
            let features = features(space, word);
            assert!(features.iter().all(|x| [-1.0, 0.0, 1.0].contains(x)), "{name}: {word}");
        }
    });
}

#[test]
fn a_canonical_word_is_allowed_and_means_the_same() {
    for_each_space(|name, space, _, words| {
        for word in words {
            let mut canonical = word.to_vec();
            space.canonical(&mut canonical);
            assert!(space.is_allowed(&canonical), "{name}: {word}");
            assert_eq!(active(space, &canonical), active(space, word), "{name}: {word}");
            assert_eq!(features(space, &canonical), features(space, word), "{name}: {word}");
            assert_eq!(space.label(&canonical), space.label(word), "{name}: {word}");
            let mut again = canonical.clone();
            space.canonical(&mut again);
            assert_eq!(again, canonical, "{name}: {word}");
        }
    });
}

#[test]
fn models_are_told_apart_by_features_and_labels() {
    for_each_space(|name, space, _, words| {
        let canonical = |word: &Model| {
            let mut word = word.to_vec();
            space.canonical(&mut word);
            word
        };
        let models: HashSet<_> = words.iter().map(canonical).collect();
        let seen: HashSet<Vec<u64>> =
            words.iter().map(|word| features(space, word).iter().map(|x| x.to_bits()).collect()).collect();
        let labels: HashSet<_> = words.iter().map(|word| space.label(word)).collect();
        assert_eq!((models.len(), models.len()), (seen.len(), labels.len()), "{name}");
    });
}

#[test]
fn default_features_are_signs_of_bits_and_one_hot_digits() {
    let space = Product::new(Subsets::new(2).unwrap(), OneOf::with_dims(&[1, 1, 1]).unwrap()).unwrap();
    assert_eq!(features(&space, &[0, 1, 2]), [-1.0, 1.0, 0.0, 0.0, 1.0]);
}

fn acyclic(n: usize, adjacency: &[bool]) -> bool {
    // Remove nodes without parents as long as there are any.
    let mut left: Vec<usize> = (0..n).collect();
    while let Some(place) = left.iter().position(|&node| left.iter().all(|&from| !adjacency[from * n + node])) {
        left.remove(place);
    }
    left.is_empty()
}

#[test]
fn words_of_graphs_give_every_acyclic_graph() {
    for (n, expected) in [(1, 1), (2, 3), (3, 25), (4, 543)] {
        let space = Dags::new(n, 1).unwrap();
        let catalogue = Catalogue::new(&space, 1 << 20).unwrap();
        let mut graphs = HashSet::new();
        let mut adjacency = vec![true; n * n];
        for index in 0..catalogue.len() {
            let word = catalogue.model(index).unwrap();
            space.adjacency(&word, &mut adjacency);
            assert!(acyclic(n, &adjacency), "{word}");
            let mut canonical = word.to_vec();
            space.canonical(&mut canonical);
            assert_eq!(space.encode(&adjacency).unwrap()[..], canonical);
            // Words ascend, so the first word of a graph is its smallest.
            let first = graphs.insert(canonical.clone());
            assert_eq!(first, canonical == word[..], "{word}");
        }
        assert_eq!(graphs.len(), expected);
    }
}

#[test]
fn a_graph_is_encoded_exactly_if_it_is_acyclic() {
    let n = 3;
    let space = Dags::new(n, 1).unwrap();
    for code in 0..1u32 << (n * n) {
        let adjacency: Vec<bool> = (0..n * n).map(|bit| code >> bit & 1 == 1).collect();
        match space.encode(&adjacency) {
            Ok(word) => {
                let mut back = vec![false; n * n];
                space.adjacency(&word, &mut back);
                assert_eq!(back, adjacency);
            }
            Err(SpaceError::Cycle { node, .. }) => {
                assert!(!acyclic(n, &adjacency));
                // The node reaches itself.
                let mut reached = vec![false; n];
                for _ in 0..n {
                    for to in 0..n {
                        reached[to] |= (0..n).any(|from| (from == node || reached[from]) && adjacency[from * n + to]);
                    }
                }
                assert!(reached[node], "{node} {adjacency:?}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn edges_own_blocks_of_coordinates_and_a_feature() {
    let space = Dags::new(3, 2).unwrap().with_names(["a", "b", "c"].map(String::from).to_vec()).unwrap();
    // Order c, a, b; edges c → a and a → b.
    let word = [2, 0, 1, 0, 1];
    assert_eq!(space.order(&word), [2, 0, 1]);
    assert_eq!(space.label(&word), "a→b, c→a");
    // Coordinates by where edges end: ba, ca; ab, cb; ac, bc.
    let on = [false, true, true, false, false, false];
    assert_eq!(active(&space, &word), on.iter().flat_map(|&on| [on; 2]).collect::<Vec<_>>());
    // Features by where they start: ab, ac; ba, bc; ca, cb.
    assert_eq!(features(&space, &word), [1.0, -1.0, -1.0, -1.0, 1.0, -1.0]);
}

/// All words of a space of graphs.
fn all_words(space: &Dags) -> Vec<Model> {
    let catalogue = Catalogue::new(space, 1 << 20).unwrap();
    (0..catalogue.len()).map(|index| catalogue.model(index).unwrap()).collect()
}

#[test]
fn nodes_have_coordinates_and_features_of_their_own() {
    let shapes = [(0, 0, 2), (1, 0, 1), (1, 3, 2), (2, 1, 0)];
    for (nodes, (always, with_parents, per_edge)) in [3, 4].into_iter().flat_map(|n| shapes.map(|shape| (n, shape))) {
        let space = Dags::with_parameters(nodes, NodeParameters { always, with_parents, per_edge }).unwrap();
        assert_eq!(nodes * space.node_width(), space.max_dim());
        let (mut keys, mut adjacency) = (vec![9; nodes], vec![false; nodes * nodes]);
        let mut mask = vec![true; space.node_width()];
        let mut contexts: HashSet<(usize, u64)> = HashSet::new();
        let mut seen: HashSet<Vec<u64>> = HashSet::new();
        for word in all_words(&space) {
            space.parents(&word, &mut keys);
            space.adjacency(&word, &mut adjacency);
            let mut together = Vec::new();
            for (node, &key) in keys.iter().enumerate() {
                let column =
                    (0..nodes).filter(|from| adjacency[from * nodes + node]).fold(0, |key, from| key | 1 << from);
                assert_eq!(key, column, "{word}: node {node}");
                space.mark_node(node, key, &mut mask);
                together.extend_from_slice(&mask);
                let mut features = vec![f64::NAN; space.node_feature_count()];
                space.node_features(node, key, &mut features);
                contexts.insert((node, key));
                seen.insert(features.iter().map(|x| x.to_bits()).collect());
            }
            assert_eq!(together, active(&space, &word), "{word}");
        }
        // A node has any set of the others as its parents, and features tell all of them apart.
        assert_eq!((contexts.len(), seen.len()), (nodes << (nodes - 1), nodes << (nodes - 1)));
    }
}

/// Nodes that differ: each has its own coordinates, those of edges next to each other, and the rest is in no graph.
#[test]
fn nodes_may_differ_in_how_many_coordinates_they_have() {
    let counts = |always, with_parents, per_edge| NodeParameters { always, with_parents, per_edge };
    let each = [(counts(1, 0, 2), 1), (counts(2, 3, 1), 3), (counts(0, 1, 4), 2)];
    let space = Dags::with_inputs(&each).unwrap();
    // With all others as parents: 1 + 2·5, 2 + 3 + 1·3, 0 + 1 + 4·4.
    assert_eq!((0..3).map(|node| space.used_width(node)).collect::<Vec<_>>(), [11, 8, 17]);
    assert_eq!((space.node_width(), space.max_dim()), (17, 51));
    assert_eq!(space.edge_coordinates(2, 0), Some(1 + 2 * 3..11));
    assert_eq!(space.edge_coordinates(0, 1), Some(17 + 5..17 + 6));
    assert_eq!(space.edge_coordinates(1, 2), Some(34 + 1 + 4..34 + 1 + 4 + 12));
    let mut ever = vec![false; 51];
    for word in all_words(&space) {
        let mut keys = [0; 3];
        space.parents(&word, &mut keys);
        let together: Vec<bool> = (0..3)
            .flat_map(|node| {
                let mut mask = vec![true; 17];
                space.mark_node(node, keys[node], &mut mask);
                let inputs: usize = (0..3).filter(|from| keys[node] >> from & 1 == 1).map(|from| each[from].1).sum();
                let own = each[node].0;
                let expected = own.always + if keys[node] == 0 { 0 } else { own.with_parents } + inputs * own.per_edge;
                assert_eq!(mask.iter().filter(|active| **active).count(), expected, "{word}: node {node}");
                mask
            })
            .collect();
        assert_eq!(together, active(&space, &word), "{word}");
        ever.iter_mut().zip(&together).for_each(|(ever, active)| *ever |= active);
    }
    let used = |place: usize| place % 17 < space.used_width(place / 17);
    assert_eq!(ever, (0..51).map(used).collect::<Vec<bool>>());
}

#[test]
fn orders_and_parents_make_their_word_again() {
    for nodes in 2..=4 {
        let space = Dags::new(nodes, 1).unwrap();
        let mut parents = vec![0; nodes];
        for word in all_words(&space) {
            space.parents(&word, &mut parents);
            let mut again = vec![u16::MAX; word.len()];
            space.write_word(&space.order(&word), &parents, &mut again);
            assert_eq!(again, word[..]);
        }
    }
}

type Edges = Vec<(usize, usize)>;

/// Rules for 4 nodes: required and forbidden edges, and the most parents.
fn some_rules() -> Vec<(Edges, Edges, usize)> {
    vec![
        (vec![(0, 1)], vec![], 3),
        (vec![(3, 0), (0, 2), (2, 1)], vec![], 3),
        (vec![], vec![(0, 1), (2, 1), (1, 3)], 3),
        (vec![], vec![], 1),
        (vec![], vec![], 0),
        // Tiers: node 2 before 0 and 3.
        (vec![], vec![(0, 2), (3, 2)], 3),
        (vec![(0, 3), (1, 3)], vec![(2, 0)], 2),
        (vec![(1, 2)], vec![(3, 1), (0, 1), (2, 1)], 1),
        (vec![(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], vec![], 3),
    ]
}

#[test]
fn rules_let_exactly_the_graphs_through_that_keep_them() {
    let free = Dags::new(4, 1).unwrap();
    let words = all_words(&free);
    for (required, forbidden, max_parents) in some_rules() {
        let allowed: Vec<(usize, usize)> =
            Graph::complete(4).unwrap().edges().filter(|edge| !forbidden.contains(edge)).collect();
        let graph = |edges: &[(usize, usize)]| Graph::from_edges(4, edges).unwrap();
        let rules = EdgeRules::new(graph(&required), graph(&allowed), max_parents).unwrap();
        let space = free.clone().with_rules(rules.clone()).unwrap();
        assert!(space.is_constrained());
        let mut adjacency = [false; 16];
        let mut keeps = |word: &[u16]| {
            free.adjacency(word, &mut adjacency);
            let parents = |to: usize| (0..4).filter(|from| adjacency[from * 4 + to]).count();
            required.iter().all(|(from, to)| adjacency[from * 4 + to])
                && !forbidden.iter().any(|(from, to)| adjacency[from * 4 + to])
                && (0..4).all(|to| parents(to) <= max_parents)
        };
        let kept: Vec<&Model> = words.iter().filter(|word| keeps(word)).collect();
        assert!(!kept.is_empty());
        for word in &words {
            assert_eq!(space.is_allowed(word), kept.binary_search(&word).is_ok(), "{required:?} {forbidden:?}: {word}");
            let mut parents = vec![0; 4];
            free.parents(word, &mut parents);
            assert_eq!(rules.allow(&Graph::from_parents(parents).unwrap()), kept.binary_search(&word).is_ok());
        }
        // Listing the words goes along allowed symbols only, and would meet a dead end.
        assert_eq!(all_words(&space).iter().collect::<Vec<_>>(), kept);
        for word in kept {
            let mut canonical = word.to_vec();
            space.canonical(&mut canonical);
            assert!(space.is_allowed(&canonical), "{word}");
        }
    }
}

#[test]
fn rules_that_contradict_themselves_are_refused() {
    let graph = |edges: &[(usize, usize)]| Graph::from_edges(3, edges).unwrap();
    let all = || Graph::complete(3).unwrap();
    let refused = |required: Graph, allowed: Graph, most: usize| EdgeRules::new(required, allowed, most).unwrap_err();
    assert_eq!(refused(graph(&[(0, 1)]), graph(&[(1, 0)]), 2), RulesError::RequiredAndForbidden { from: 0, to: 1 });
    assert!(matches!(refused(graph(&[(0, 1), (1, 0)]), all(), 2), RulesError::RequiredCycle { node: 0 | 1 }));
    let many = RulesError::TooManyRequired { node: 1, required: 2, most: 1 };
    assert_eq!(refused(graph(&[(0, 1), (2, 1)]), all(), 1), many);
    let other = Graph::complete(4).unwrap();
    assert_eq!(refused(graph(&[]), other, 3), RulesError::Nodes { required: 3, allowed: 4 });
    assert_eq!(EdgeRules::none(65).unwrap_err(), RulesError::Graph(GraphError::TooManyNodes { nodes: 65, most: 64 }));
    let error = Dags::new(4, 1).unwrap().with_rules(EdgeRules::none(3).unwrap()).unwrap_err();
    assert_eq!(error, SpaceError::Rules { found: 3, nodes: 4 });
    // Rules that ask nothing are none.
    assert!(Dags::new(4, 1).unwrap().with_rules(EdgeRules::none(4).unwrap()).unwrap().rules().is_none());
}

#[test]
fn restricting_at_random_gives_what_brute_force_gives() {
    let base = Product::new(OneOf::with_dims(&[1, 1, 1]).unwrap(), Subsets::new(6).unwrap()).unwrap();
    let all = Catalogue::new(&base, 1000).unwrap();
    for (seed, share) in [0.02, 0.3, 0.9].into_iter().enumerate() {
        let mut stream = Stream::new(seed as u64, Purpose::Other(3), 0, 0);
        let kept: HashSet<Model> =
            (0..all.len()).filter(|_| stream.uniform() < share).map(|index| all.model(index).unwrap()).collect();
        let space = Restricted::new(&base, |word| kept.contains(word)).unwrap();
        let catalogue = Catalogue::new(&space, 1000).unwrap();
        let found: HashSet<Model> = (0..catalogue.len()).map(|index| catalogue.model(index).unwrap()).collect();
        assert_eq!(found, kept);
        for index in 0..all.len() {
            let word = all.model(index).unwrap();
            assert_eq!(space.is_allowed(&word), kept.contains(&word));
            assert_eq!(catalogue.index(&word).is_some(), kept.contains(&word));
        }
    }
}

#[test]
fn a_million_words_are_numbered_quickly() {
    let start = std::time::Instant::now();
    let all = Catalogue::new(&Subsets::new(20).unwrap(), 1 << 20).unwrap();
    let most = Catalogue::new(&Subsets::new(20).unwrap().with_sizes(1..=20).unwrap(), 1 << 20).unwrap();
    assert_eq!((all.len(), most.len()), (1 << 20, (1 << 20) - 1));
    let mut word = [0; 20];
    for index in (0..most.len()).step_by(997) {
        most.word(index, &mut word).unwrap();
        assert_eq!((most.index(&word), all.index(&word)), (Some(index), Some(index + 1)));
    }
    // It takes some tens of milliseconds; a busy machine gets time to spare.
    assert!(start.elapsed().as_secs_f64() < 5.0, "{:?}", start.elapsed());
}

/// How probable each move is, from many tries; the log ratio of a move and its reverse is what a space says it is.
#[test]
fn a_proposal_knows_how_probable_its_reverse_is() {
    let tries = 40_000u64;
    for (name, space) in spaces() {
        let catalogue = Catalogue::new(&space, 10_000).unwrap();
        if catalogue.len() > 40 || space.arities().is_empty() {
            continue;
        }
        let words: Vec<Model> = (0..catalogue.len()).map(|index| catalogue.model(index).unwrap()).collect();
        let mut moves = std::collections::HashMap::new();
        for (from, word) in words.iter().enumerate() {
            let mut stream = Stream::new(1, Purpose::Other(0), 0, from as u64);
            for _ in 0..tries {
                let mut next = word.to_vec();
                let log_ratio = space.propose(&mut next, &mut stream);
                assert!(next.iter().zip(space.arities()).all(|(symbol, arity)| symbol < arity), "{name}");
                let Some(to) = catalogue.index(&next) else { continue };
                let entry = moves.entry((from, to)).or_insert((0u64, log_ratio));
                entry.0 += 1;
                assert_eq!(entry.1, log_ratio, "{name}: one move, two ratios");
            }
        }
        for (&(from, to), &(count, log_ratio)) in &moves {
            let &(back, log_back) = moves.get(&(to, from)).unwrap_or_else(|| panic!("{name}: no way back"));
            assert!((log_ratio + log_back).abs() < 1e-12, "{name}");
            // Five standard errors of the log of a ratio of counts.
            let error = 5.0 * (1.0 / count as f64 + 1.0 / back as f64).sqrt();
            assert!(
                ((back as f64 / count as f64).ln() - log_ratio).abs() < error,
                "{name}: {count} {back} {log_ratio}"
            );
        }
    }
}
