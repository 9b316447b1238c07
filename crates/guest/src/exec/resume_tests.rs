use super::*;

fn finished(bytes: usize, delivered: bool) -> Arc<Finished> {
    let mut log = Log::default();
    log.push(1, &vec![0; bytes]);
    let lease = Duration::from_secs(60);
    Arc::new(Finished::new(
        log,
        Vec::new(),
        Resumed::default(),
        lease,
        delivered,
    ))
}

fn names(all: &Resumable) -> Vec<&str> {
    all.finished.iter().map(|(id, _)| id.as_str()).collect()
}

#[test]
fn results_that_nobody_heard_are_kept_longest() {
    let mut all = Resumable::default();
    let mega = 1024 * 1024;
    all.keep("heard-1".to_owned(), finished(mega, true));
    all.keep("unheard-1".to_owned(), finished(15 * mega, false));
    all.keep("unheard-2".to_owned(), finished(mega, false));
    assert_eq!(names(&all), ["unheard-1", "unheard-2"]);
    all.keep("heard-2".to_owned(), finished(0, true));
    assert_eq!(names(&all), ["unheard-1", "unheard-2", "heard-2"]);
    all.keep("unheard-3".to_owned(), finished(1, false));
    assert_eq!(names(&all), ["unheard-2", "unheard-3"]);
}

#[test]
fn their_number_and_their_time_are_bounded() {
    let mut all = Resumable::default();
    for i in 0..MAX_FINISHED + 3 {
        all.keep(i.to_string(), finished(10, i % 2 == 0));
    }
    assert_eq!(all.finished.len(), MAX_FINISHED);
    assert_eq!(names(&all)[..4], ["1", "3", "5", "6"]);
    assert!(all.has_unheard());
    all.forget_old(Instant::now() + Duration::from_secs(61));
    assert!(all.finished.is_empty() && !all.has_unheard());
}
