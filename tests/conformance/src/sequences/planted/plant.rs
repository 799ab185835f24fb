//! The mistakes that are planted.

use crate::plants::plants;

plants! {
    /// The lane is driven before the queue entry is written.
    LaneBeforeEntry,
    /// An end and its follow-up on the same lane are two writes.
    FollowUpSplit,
    /// A start on a free lane does not depend on the context's flags.
    CheckStripped,
    /// A granted execution starts without looking at its context.
    ContextNotRead,
    /// A duplicate is acknowledged and nothing settled.
    DuplicateSilent,
    /// Every request for the lane has the same number.
    AskNumberConstant,
    /// The head of the queue is the one read before the holder was seen to leave.
    HeadCached,
    /// Settling does not send the wake-up again.
    WakeNotResent,
    /// A wake-up that comes early is dropped.
    EarlyWakeDropped,
    /// A follow-up counts as caused after an abort that covers its cause.
    AbortNotInherited,
    /// Nobody looks again after a pause was obeyed.
    PauseNotRechecked,
    /// The execution is read without consistency.
    StaleExecution,
    /// Executions leave no tombstone.
    NoTombstone,
    /// A message is acknowledged after the commit, before what it owes is done.
    AcknowledgeAfterCommit,
    /// The lock is written without a condition.
    LockUnconditional,
    /// Event ids do not follow from content: a publication that is repeated has another time.
    TimeOfPublication,
    /// A free lane is taken although somebody waits for it.
    FreeLaneTaken,
    /// The place in the queue goes by when a trigger is handled, not by when it was sent.
    AcceptedWhenHandled,
    /// Follow-ups queue by their own time, not by their root's.
    FollowUpsByOwnTime,
    /// What is open is not kept from expiring.
    ProlongForgotten,
    /// A worker that left a lane long ago frees it for any later request of the same execution.
    ZombieFreesLane,
    /// Late answers are recorded as if they counted.
    StaleUnmarked,
    /// Whoever meets a record publishes it.
    MadeByAnybody,
    /// A record does not know which message made it.
    MakerForgotten,
    /// Events are published before the commit.
    PublishedEarly,
    /// Failed entries of a publication are not sent again.
    FailedEntriesIgnored,
    /// Keys that a batch left over are taken for absent.
    UnprocessedKeysIgnored,
    /// Writes that a batch left over are taken for done.
    LeftoverWritesIgnored,
    /// The sweep does not look at the context's flags.
    SweepIgnoresFlags,
    /// The sweep does not see triggers that were never published.
    SweepIgnoresTriggers,
    /// The sweep does not see who waits for a lane.
    SweepIgnoresLanes,
    /// The sweep has a trigger repeated each time.
    RepeatedForEver,
    /// A decision of a person is acknowledged and not stored.
    DecisionLost,
    /// The first trigger of a context writes over what a person told it meanwhile.
    ContextOverwritten,
    /// A dead letter that fails again is not put off, but forgotten.
    LetterForgotten,
    /// The windows of the first shipyard count, whatever was applied since.
    OldWindows,
    /// Another shipyard's windows are not told to whom the ones before hold back.
    HeldNotTold,
    /// Nobody is woken when a window opens.
    HeldWakeLost,
    /// A schedule is written without a condition.
    ScheduleUnconditional,
    /// What a schedule starts has an id that follows from the message.
    FiredByMessage,
    /// A redelivery does not send the firings that the first delivery left.
    FiringForgotten,
    /// A retry has an id that follows from the request.
    RetriedByRequest,
    /// The payload forgets how many actions were tried.
    ActionsBeginAnew,
    /// An older trigger that comes late stays beside the newer one that waits.
    OlderStays,
    /// Who is held back and ends is still marked.
    HeldKept,
    /// An answer that is in a record of a lost race is not kept in another way.
    AnswerTakenForKept,
}
