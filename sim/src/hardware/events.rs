//! Fault events: who listens, what waits for them, what happened last.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::wire::{EventFilter, EventRecord};

/// Events that wait for one listener; the oldest give way and are counted.
pub(crate) const MAX_QUEUED: usize = 8192;
/// Processes that may subscribe at one time.
pub(crate) const MAX_SUBSCRIBED_PROCESSES: usize = 64;
/// Events kept for `status`.
pub(crate) const MAX_HISTORY: usize = 256;

const FILTER_EVENT_ID: u64 = 1;
const FILTER_SEVERITY: u64 = 1 << 1;
const FILTER_NODE_TYPE: u64 = 1 << 2;

#[derive(Debug, Default)]
pub(crate) struct Events {
    subscribers: BTreeMap<u64, Inbox>,
    readers: BTreeMap<i32, Inbox>,
    at_subscribe: VecDeque<EventRecord>,
    history: VecDeque<EventRecord>,
    next_serial: i32,
}

/// Events that wait for one listener.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// Listening process.
    pub(crate) pid: i32,
    filter: EventFilter,
    chip: Option<usize>,
    queue: VecDeque<EventRecord>,
    dropped: u64,
}

/// What a reader finds.
#[derive(Debug)]
pub(crate) enum ReadEvent {
    /// An event.
    Waiting(EventRecord),
    /// No event yet.
    Empty,
    /// The process is no reader any more.
    Closed,
}

impl Inbox {
    /// An empty inbox; `chip` is a slot number, all chips when absent.
    pub(crate) fn new(pid: i32, filter: EventFilter, chip: Option<usize>) -> Self {
        Self {
            pid,
            filter,
            chip,
            queue: VecDeque::new(),
            dropped: 0,
        }
    }

    fn wants(&self, event: &EventRecord) -> bool {
        self.chip.is_none_or(|chip| chip == event.chip) && matches(self.filter, event)
    }

    fn push(&mut self, event: &EventRecord) {
        if !self.wants(event) {
            return;
        }
        if self.queue.len() >= MAX_QUEUED {
            self.queue.pop_front();
            self.dropped += 1;
        }
        self.queue.push_back(event.clone());
    }
}

impl Events {
    /// Serial number of the next event.
    pub(super) fn take_serial(&mut self) -> i32 {
        self.next_serial = self.next_serial.wrapping_add(1).max(1);
        self.next_serial
    }

    /// Hands an event out now, or keeps it for the next subscriber.
    pub(super) fn tell(&mut self, event: EventRecord, on_subscribe: bool) {
        if on_subscribe {
            self.keep_for_subscriber(event);
        } else {
            self.emit(event);
        }
    }

    /// Hands an event to everybody who wants it.
    pub(super) fn emit(&mut self, event: EventRecord) {
        for inbox in self
            .subscribers
            .values_mut()
            .chain(self.readers.values_mut())
        {
            inbox.push(&event);
        }
        remember(&mut self.history, event, MAX_HISTORY);
    }

    /// Keeps an event for the next subscriber.
    pub(super) fn keep_for_subscriber(&mut self, event: EventRecord) {
        remember(&mut self.at_subscribe, event, MAX_QUEUED);
    }

    /// Adds a subscriber and returns what it gets before its call returns; `None` when too many
    /// processes subscribe already.
    pub(crate) fn subscribe(&mut self, connection: u64, inbox: Inbox) -> Option<Vec<EventRecord>> {
        let mut pids: BTreeSet<i32> = self.subscribers.values().map(|other| other.pid).collect();
        pids.insert(inbox.pid);
        if pids.len() > MAX_SUBSCRIBED_PROCESSES {
            return None;
        }
        let early = self
            .at_subscribe
            .drain(..)
            .filter(|event| inbox.wants(event))
            .collect();
        self.subscribers.insert(connection, inbox);
        Some(early)
    }

    /// What waits for a subscriber; `None` once it is no subscriber any more.
    pub(crate) fn take(&mut self, connection: u64) -> Option<Vec<EventRecord>> {
        self.subscribers
            .get_mut(&connection)
            .map(|inbox| inbox.queue.drain(..).collect())
    }

    /// Forgets a subscriber.
    pub(crate) fn unsubscribe(&mut self, connection: u64) {
        self.subscribers.remove(&connection);
    }

    /// Lets a process read events from now on.
    pub(crate) fn open_reader(&mut self, pid: i32) {
        self.readers
            .entry(pid)
            .or_insert_with(|| Inbox::new(pid, EventFilter::default(), None));
    }

    /// The first waiting event that passes; those before it are dropped, as a read consumes them.
    pub(crate) fn read(&mut self, pid: i32, filter: EventFilter, chip: Option<usize>) -> ReadEvent {
        let Some(inbox) = self.readers.get_mut(&pid) else {
            return ReadEvent::Closed;
        };
        while let Some(event) = inbox.queue.pop_front() {
            if chip.is_none_or(|chip| chip == event.chip) && matches(filter, &event) {
                return ReadEvent::Waiting(event);
            }
        }
        ReadEvent::Empty
    }

    /// Forgets the reader of a process.
    pub(crate) fn close_reader(&mut self, pid: i32) {
        self.readers.remove(&pid);
    }

    /// Forgets all listeners and what waits for them.
    pub(super) fn forget_listeners(&mut self) {
        self.subscribers.clear();
        self.readers.clear();
        self.at_subscribe.clear();
    }

    /// Whether the process subscribes.
    pub(super) fn is_subscribed(&self, pid: i32) -> bool {
        self.subscribers.values().any(|inbox| inbox.pid == pid)
    }

    /// Events lost because a listener was slow.
    pub(super) fn dropped(&self) -> u64 {
        self.subscribers
            .values()
            .chain(self.readers.values())
            .map(|inbox| inbox.dropped)
            .sum()
    }

    /// The last events, oldest first.
    pub(super) fn history(&self) -> impl Iterator<Item = &EventRecord> {
        self.history.iter()
    }
}

fn remember(queue: &mut VecDeque<EventRecord>, event: EventRecord, limit: usize) {
    if queue.len() >= limit {
        queue.pop_front();
    }
    queue.push_back(event);
}

fn matches(filter: EventFilter, event: &EventRecord) -> bool {
    (filter.flag & FILTER_EVENT_ID == 0 || filter.event_id == event.event_id)
        && (filter.flag & FILTER_SEVERITY == 0 || event.severity >= filter.severity)
        && (filter.flag & FILTER_NODE_TYPE == 0 || filter.node_type == event.node_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event_id: u32, severity: u8) -> EventRecord {
        EventRecord {
            chip: 0,
            logic: 0,
            event_id,
            assertion: 1,
            severity,
            node_type: 0x40,
            serial: 1,
            raised_ms: 0,
            name: String::new(),
        }
    }

    #[test]
    fn filters_by_id_severity_and_node_type() {
        let filter = |flag| EventFilter {
            flag,
            event_id: 7,
            severity: 2,
            node_type: 0x40,
        };
        assert!(matches(filter(0), &event(1, 0)));
        assert!(!matches(filter(1), &event(1, 3)));
        assert!(matches(filter(1), &event(7, 0)));
        assert!(!matches(filter(2), &event(7, 1)));
        assert!(matches(filter(2), &event(1, 3)));
        assert!(matches(filter(4), &event(1, 0)));
        assert!(!matches(filter(7), &event(7, 1)));
    }

    #[test]
    fn a_slow_listener_loses_the_oldest_events_and_they_are_counted() {
        let mut events = Events::default();
        events
            .subscribe(1, Inbox::new(10, EventFilter::default(), None))
            .unwrap();
        for id in 0..u32::try_from(MAX_QUEUED).unwrap() + 3 {
            events.emit(event(id, 1));
        }
        assert_eq!(events.dropped(), 3);
        assert_eq!(events.take(1).unwrap()[0].event_id, 3);
        assert_eq!(events.history().count(), MAX_HISTORY);
    }

    #[test]
    fn the_sixty_fifth_process_cannot_subscribe() {
        let mut events = Events::default();
        for pid in 0..64 {
            let inbox = Inbox::new(pid, EventFilter::default(), None);
            assert!(
                events
                    .subscribe(u64::try_from(pid).unwrap(), inbox)
                    .is_some()
            );
        }
        assert!(
            events
                .subscribe(99, Inbox::new(99, EventFilter::default(), None))
                .is_none()
        );
        events.unsubscribe(0);
        assert!(
            events
                .subscribe(99, Inbox::new(99, EventFilter::default(), None))
                .is_some()
        );
    }
}
