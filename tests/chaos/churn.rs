//! kill -9 of the agent at random moments while pods come and go.
//!
//! The model knows what each living pod was given, from the answers alone. After every verdict and at
//! the end of every round it is compared with kubelet's books and with what the agent says: no chip
//! twice (L-1, L-10, L-11), no holder lost (FF-14).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::kubelet::Pending;
use crate::node::{
    Granted, Node, PATIENCE, RESOURCE, Verdict, children, kill, knows, kubelet_books, pod,
    registered, uid, verdict_of,
};
use crate::seed::Seed;

const ROUNDS: u32 = 200;

#[test]
fn kills_under_pod_churn_give_no_chip_twice_and_lose_no_holder() {
    let rounds = std::env::var_os("ASCEND_TEST_CHURN_ROUNDS")
        .map_or(ROUNDS, |text| text.to_str().unwrap().parse().unwrap());
    let node = Node::with_kubelet().with_flags(&[
        "--owner-proof-seconds",
        "2",
        "--records-poll-seconds",
        "5",
    ]);
    let mut churn = Churn {
        node,
        seed: Seed::of_this_run(),
        round: 0,
        living: BTreeMap::new(),
        born: 0,
        under_way: Vec::new(),
        agent: 0,
        forgetful: false,
        tally: BTreeMap::new(),
    };
    churn.node.call("admit", json!({ "pod": bystander() }));
    churn.agent = churn.node.start_agent();
    churn.node.allocatable(8);
    while churn.round < rounds {
        churn.round += 1;
        churn.one_round();
    }
    churn.every_other_chip_becomes_free();
    println!("seed {}, {rounds} rounds:", churn.seed.start);
    for (what, count) in &churn.tally {
        println!("{count:6} {what}");
    }
    assert!(churn.count("granted") >= u64::from(rounds) / 4);
    churn.node.done();
}

struct Living {
    chips: u32,
    granted: Granted,
}

struct UnderWay {
    name: String,
    chips: u32,
    answer: Pending,
}

struct Churn {
    node: Node,
    seed: Seed,
    round: u32,
    living: BTreeMap<String, Living>,
    born: u64,
    under_way: Vec<UnderWay>,
    agent: u32,
    /// Kubelet lost its checkpoint, and no registration has come since.
    forgetful: bool,
    tally: BTreeMap<String, u64>,
}

impl Churn {
    fn one_round(&mut self) {
        if !self.seed.once_in(3) {
            self.let_chips_come_free();
        }
        match self.seed.below(40) {
            0 | 1 => self.restart_kubelet(),
            2 => self.restart_kubelet_without_checkpoint(),
            3 | 4 => self.kill_kubelet(),
            5 | 6 => self.kill_driver_host(),
            _ => {}
        }
        for _ in 0..=self.seed.below(3) {
            if self.seed.below(5) < 2 {
                self.remove_one();
            } else {
                self.begin_one();
                if self.seed.once_in(3) {
                    self.collect();
                }
            }
        }
        let longest = if self.seed.once_in(2) { 8 } else { 60 };
        self.wait_a_moment(longest);
        self.kill_agent();
        if self.seed.once_in(4) {
            self.collect();
        }
        self.agent = self.node.start_agent();
        if self.seed.once_in(6) {
            self.wait_a_moment(400);
            self.kill_agent();
            self.agent = self.node.start_agent();
        }
        self.collect();
        self.compare();
    }

    /// Not a wait for anything: it chooses the moment of the next blow.
    fn wait_a_moment(&mut self, longest_ms: u64) {
        std::thread::sleep(Duration::from_millis(self.seed.below(longest_ms + 1)));
    }

    /// Most rounds begin with chips to be had. Those of grants that a kill cut short come back only
    /// in a run of the agent that lives long enough to prove that nobody has them.
    fn let_chips_come_free(&mut self) {
        let held = self.ids();
        if held.len() > 5 || self.free(&held) > 0 {
            return;
        }
        self.note("rested until chips came free");
        self.node
            .eventually("chips come free", PATIENCE, || self.free(&held) >= 3);
    }

    fn free(&self, held: &BTreeSet<String>) -> usize {
        let ids = self.node.call("allocatable_ids", json!({}));
        let ids = ids["resources"][RESOURCE].as_array().into_iter().flatten();
        ids.filter_map(Value::as_str)
            .filter(|id| !held.contains(*id))
            .count()
    }

    fn kill_agent(&mut self) {
        self.note("agent killed");
        self.node.stage.kill_agent();
    }

    fn kill_driver_host(&mut self) {
        for host in children(self.agent) {
            self.note("driver host killed");
            kill(host);
        }
    }

    fn begin_one(&mut self) {
        self.born += 1;
        let name = format!("p{}", self.born);
        let chips = 1 + u32::try_from(self.seed.below(3)).unwrap();
        let request = json!({ "pod": pod(&name, chips) });
        let kubelet = self.node.stage.kubelet().unwrap();
        let answer = kubelet.begin("admit", request).unwrap();
        self.under_way.push(UnderWay {
            name,
            chips,
            answer,
        });
    }

    fn remove_one(&mut self) {
        let names: Vec<String> = self.living.keys().cloned().collect();
        let Some(name) = self.seed.one_of(&names).cloned() else {
            return;
        };
        // From here on the pod has no claim any more, whenever kubelet gets to it.
        self.living.remove(&name);
        self.node.remove(&name);
        self.note("removed");
    }

    /// Takes the verdicts of all admissions under way.
    fn collect(&mut self) {
        for begun in std::mem::take(&mut self.under_way) {
            match begun.answer.wait() {
                Ok(answer) => self.take_verdict(&begun.name, begun.chips, &verdict_of(&answer)),
                Err(error) => self.fail(&format!("{}: {error}", begun.name)),
            }
        }
    }

    fn take_verdict(&mut self, name: &str, chips: u32, verdict: &Verdict) {
        match verdict {
            Verdict::Admitted(granted, _) if granted.ids.is_empty() && self.forgetful => {
                // Kubelet lets such a pod pass as long as it has never heard of the resource.
                self.note("let pass without a chip by a kubelet that forgot the resource");
                self.node.remove(name);
            }
            Verdict::Admitted(granted, _) => {
                if granted.ids.len() != usize::try_from(chips).unwrap()
                    || granted.device_nodes.len() != granted.ids.len()
                {
                    self.fail(&format!("{name} asked for {chips} and got {granted:?}"));
                }
                for (other, living) in &self.living {
                    if !living.granted.ids.is_disjoint(&granted.ids)
                        || !living
                            .granted
                            .device_nodes
                            .is_disjoint(&granted.device_nodes)
                    {
                        let theirs = &living.granted;
                        self.fail(&format!(
                            "{name} got {granted:?}, {other} lives on {theirs:?}"
                        ));
                    }
                }
                let granted = granted.clone();
                self.living
                    .insert(name.to_owned(), Living { chips, granted });
                self.note("granted");
            }
            Verdict::Refused(reason) => {
                let reason = without_names(reason);
                self.note(&format!("refused: {reason}"));
            }
        }
    }

    fn restart_kubelet(&mut self) {
        self.note("kubelet restarted");
        let answer = self.node.call("restart", json!({}));
        self.collect_cut_short();
        self.take_beginning(&answer);
    }

    /// Kubelet forgets everything. A pod whose name the agent never saw could not be told from one
    /// that is gone, by anybody, so this waits until all are known.
    fn restart_kubelet_without_checkpoint(&mut self) {
        self.collect();
        let ids = self.ids();
        self.node
            .status_when("every holder is known by name", PATIENCE, |status| {
                knows(status, &ids)
                    && status
                        .allocations
                        .iter()
                        .filter(|held| ids.contains(&held.plugin_device_id))
                        .all(|held| !held.pod.is_empty())
            });
        self.note("kubelet restarted without its checkpoint");
        self.forgetful = true;
        let answer = self
            .node
            .call("restart", json!({ "keep_checkpoint": false }));
        self.take_beginning(&answer);
    }

    fn kill_kubelet(&mut self) {
        self.note("kubelet killed");
        self.node.stage.kill_kubelet();
        let mut pods = vec![bystander()];
        for (name, living) in &self.living {
            let mut pod = pod(name, living.chips);
            pod["running"] = json!(true);
            pods.push(pod);
        }
        // The API server hands over what was on its way as well; none of it ran.
        for begun in self.under_way.drain(..) {
            let mut pod = pod(&begun.name, begun.chips);
            pod["running"] = json!(false);
            pods.push(pod);
        }
        let answer = self.node.start_kubelet(&pods).unwrap();
        self.take_beginning(&answer);
    }

    /// Verdicts that a kubelet restart overtook: some came, the others are part of its answer.
    fn collect_cut_short(&mut self) {
        for begun in std::mem::take(&mut self.under_way) {
            if let Ok(answer) = begun.answer.wait() {
                self.take_verdict(&begun.name, begun.chips, &verdict_of(&answer));
            } else {
                self.note("admission cut short by kubelet's end");
            }
        }
    }

    /// What a new kubelet says of the pods it was handed.
    fn take_beginning(&mut self, answer: &Value) {
        for verdict in answer["pods"].as_array().into_iter().flatten() {
            let name = verdict["uid"].as_str().unwrap().replacen("uid-", "", 1);
            if name == BYSTANDER {
                continue;
            }
            let admitted = verdict["admitted"] == json!(true);
            match (self.living.contains_key(&name), admitted) {
                (true, true) => {}
                (true, false) => {
                    self.living.remove(&name);
                    self.note("pod failed by a kubelet restart");
                }
                (false, true) => {
                    // It will only run with what kubelet can make its container with.
                    self.note("pod cut short, taken on by the next kubelet and removed");
                    self.node.remove(&name);
                }
                (false, false) => self.note("pod cut short, failed by the next kubelet"),
            }
        }
    }

    /// The three views agree once the agent is back.
    fn compare(&mut self) {
        let books = kubelet_books(&self.node);
        let mut seen: BTreeMap<&String, &String> = BTreeMap::new();
        for (name, living) in &self.living {
            let booked = books.get(&uid(name));
            // A kubelet that lost its checkpoint has no books about a pod that runs on.
            let ids = booked
                .filter(|ids| !ids.is_empty())
                .unwrap_or(&living.granted.ids);
            for id in ids {
                if let Some(other) = seen.insert(id, name) {
                    self.fail(&format!("{id} is in {name} and in {other}"));
                }
            }
        }
        let ids = self.ids();
        let status =
            self.node
                .status_when("registered again, every holder known", PATIENCE, |status| {
                    registered(status) && knows(status, &ids)
                });
        self.forgetful = false;
        let chips: BTreeSet<&str> = status
            .chips
            .iter()
            .filter(|chip| !chip.holder.is_empty())
            .map(|chip| chip.plugin_device_id.as_str())
            .collect();
        if let Some(id) = ids.iter().find(|id| !chips.contains(id.as_str())) {
            self.fail(&format!("the chip of {id} has no holder in the status"));
        }
        if status.store.state != "durable" {
            self.fail(&format!("the store is {:?}", status.store));
        }
        let damaged = std::fs::read_dir(self.node.stage.path("state")).unwrap();
        for entry in damaged.flatten() {
            if entry.file_name().to_string_lossy().contains("damaged") {
                self.fail("a kill damaged the store");
            }
        }
    }

    /// What nobody lives on is given back once that is proven.
    fn every_other_chip_becomes_free(&mut self) {
        while self.living.len() > 1 {
            self.remove_one();
        }
        let ids = self.ids();
        self.node
            .status_when("only the living hold chips", PATIENCE, |status| {
                let held: BTreeSet<String> = status
                    .allocations
                    .iter()
                    .map(|held| held.plugin_device_id.clone())
                    .collect();
                held == ids
            });
        self.node.allocatable(8);
    }

    fn ids(&self) -> BTreeSet<String> {
        let all = self.living.values().flat_map(|living| &living.granted.ids);
        all.cloned().collect()
    }

    fn note(&mut self, what: &str) {
        *self.tally.entry(what.to_owned()).or_default() += 1;
    }

    fn count(&self, what: &str) -> u64 {
        self.tally.get(what).copied().unwrap_or_default()
    }

    fn fail(&self, what: &str) -> ! {
        panic!(
            "ASCEND_TEST_SEED={} round {}: {what}\n{}",
            self.seed.start,
            self.round,
            self.node.last_words()
        );
    }
}

const BYSTANDER: &str = "bystander";

/// A pod without chips, as every node has some: the agent's own is one. Kubelet's list of pods is
/// never empty then; an empty one proves nothing.
fn bystander() -> Value {
    json!({ "name": BYSTANDER, "uid": uid(BYSTANDER), "containers": [{ "name": "main" }] })
}

/// A refusal without the numbers in it, so that equal ones count as one.
fn without_names(reason: &str) -> String {
    let words = reason.split_whitespace().map(|word| {
        if word.bytes().any(|byte| byte.is_ascii_digit()) {
            "N"
        } else {
            word
        }
    });
    words
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(160)
        .collect()
}
