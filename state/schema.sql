-- One file follows one topic. Offsets, state and history change only together, in one transaction.

-- What this file follows. topic_id tells a topic from one made anew under the same name.
create table source (
    one        integer primary key check (one = 1),
    topic      text    not null,
    topic_id   text    not null,
    group_id   text    not null
) strict;

-- One start of `convoy consume`.
create table run (
    run           integer primary key,
    started_us    integer not null,          -- microseconds since 1970
    workers       integer not null,
    version_check integer not null check (version_check in (0, 1)),
    dispatch      text    not null check (dispatch in ('group', 'share')),
    gate          text    not null,          -- key that workers wait for in share dispatch; 'none': no gate
    selective     integer not null check (selective in (0, 1)),  -- history events pass the gate
    tick_us       integer,                   -- microseconds of a tick; null: not paced
    zero_us       integer                    -- when tick 0 begins, for every worker; null: not begun
) strict;

-- How far each partition is applied, and by whom. The truth about progress.
create table progress (
    partition   integer primary key,
    next_offset integer,                     -- last offset read + 1; null: nothing read yet
    owner_epoch integer not null,            -- raised by each new owner; an older one changes nothing
    owner       text    not null,
    end_seen    integer not null default -1  -- the end of the partition as its owner last met it
) strict;

-- Every claim on a partition, so that a write of an owner whose time was over can be told.
create table claim (
    partition   integer not null,
    owner_epoch integer not null,
    owner       text    not null,
    after_step  integer not null,            -- the last step of the history at that moment; 0: none
    claimed_us  integer not null,            -- microseconds since 1970
    primary key (partition, owner_epoch)
) strict;

-- The state of each shipment now.
create table shipment (
    tracking_no   text    primary key,
    line          text    not null,
    state         text    not null,
    version       integer not null,
    arrival_order integer not null
) strict, without rowid;

-- Every event applied or skipped, in the order in which the table saw it.
create table history (
    step           integer primary key,
    partition      integer not null,
    offset         integer not null,
    tracking_no    text    not null,
    line           text    not null,
    state          text    not null,         -- of a history event: where it was scanned
    version        integer,                  -- null: a history event, which touches no state
    duration       integer not null,         -- ticks
    arrival_order  integer not null,
    version_before integer,                  -- null: the shipment was new
    version_after  integer,
    backward       integer not null check (backward in (0, 1)),
    skipped        integer not null check (skipped in (0, 1)),
    run            integer not null references run,
    worker         integer not null,
    owner_epoch    integer,                  -- null: share dispatch, where nobody owns a partition
    delivery       integer not null,         -- 1: the first time that the broker handed it out
    started_us     integer,                  -- when paced work on it began and was done,
    finished_us    integer,                  --   in microseconds since 1970; null: not paced
    applied_us     integer not null,         -- microseconds since 1970
    unique (partition, offset)               -- a second delivery has no second place to go
) strict;

-- Records that were not applied, kept whole with the reason. Also the outbox of <topic>.dead-letter.
create table dead_letter (
    partition   integer not null,
    offset      integer not null,
    key         blob,
    value       blob,
    reason      text    not null,
    parked      integer not null check (parked in (0, 1)),  -- no fault of its own: waits behind another
    run         integer not null references run,
    worker      integer not null,
    owner_epoch integer,                     -- null: share dispatch, where nobody owns a partition
    kept_us     integer not null,            -- microseconds since 1970
    sent_us     integer,                     -- acknowledged by <topic>.dead-letter; null: not yet
    resolved_us integer,                     -- applied by a retry, so it is in the history too; null: not yet
    primary key (partition, offset)
) strict;

create index dead_letter_unsent on dead_letter (partition, offset) where sent_us is null;
create index dead_letter_open on dead_letter (partition, key, offset) where resolved_us is null;
