-- name: set_source
insert into source (one, topic, topic_id, group_id) values (1, :topic, :topic_id, :group_id);

-- name: get_source
select topic, topic_id, group_id from source;

-- name: start_run
insert into run (started_us, workers, version_check, dispatch, gate, selective, tick_us)
values (:started_us, :workers, :version_check, :dispatch, :gate, :selective, :tick_us)
returning run;

-- name: get_last_dispatch
select dispatch from run order by run desc limit 1;

-- name: set_zero
update run set zero_us = :zero_us where run = :run and zero_us is null;

-- name: get_zero
select zero_us from run where run = ?;

-- name: claim
insert into progress (partition, next_offset, owner_epoch, owner) values (:partition, null, 1, :owner)
on conflict (partition) do update set owner_epoch = owner_epoch + 1, owner = excluded.owner
returning owner_epoch, next_offset, end_seen;

-- name: add_claim
insert into claim (partition, owner_epoch, owner, after_step, claimed_us)
values (:partition, :owner_epoch, :owner, (select coalesce(max(step), 0) from history), :claimed_us);

-- name: get_claims
select partition, owner_epoch, owner, after_step, claimed_us from claim order by partition, owner_epoch;

-- name: fence
select owner_epoch, next_offset from progress where partition = :partition;

-- name: get_version
select version from shipment where tracking_no = ?;

-- name: put_shipment
insert into shipment (tracking_no, line, state, version, arrival_order)
values (:tracking_no, :line, :state, :version, :arrival_order)
on conflict (tracking_no) do update set
    line = excluded.line, state = excluded.state, version = excluded.version,
    arrival_order = excluded.arrival_order;

-- name: add_history
insert into history (
    partition, offset, tracking_no, line, state, version, duration, arrival_order,
    version_before, version_after, backward, skipped, run, worker, owner_epoch,
    delivery, started_us, finished_us, applied_us
) values (
    :partition, :offset, :tracking_no, :line, :state, :version, :duration, :arrival_order,
    :version_before, :version_after, :backward, :skipped, :run, :worker, :owner_epoch,
    :delivery, :started_us, :finished_us, :applied_us
);

-- name: add_dead_letter
insert into dead_letter (partition, offset, key, value, reason, parked, run, worker, owner_epoch, kept_us)
values (:partition, :offset, :key, :value, :reason, :parked, :run, :worker, :owner_epoch, :kept_us);

-- name: get_parking_keys
select distinct key from dead_letter
where partition = :partition and key is not null and resolved_us is null;

-- name: get_unsent
select partition, offset, key, value, reason from dead_letter
where sent_us is null and partition = :partition
order by offset limit :most;

-- name: get_unsent_partitions
select distinct partition from dead_letter where sent_us is null;

-- name: set_sent
update dead_letter set sent_us = :sent_us where partition = :partition and offset = :offset;

-- name: get_open_of_key
select partition, offset, key, value, reason, parked from dead_letter
where partition = :partition and key = :key and resolved_us is null order by offset;

-- name: get_dead_letter
select partition, offset, key, value, reason, parked, run, worker, owner_epoch, kept_us, sent_us, resolved_us
from dead_letter where partition = :partition and offset = :offset;

-- name: was_passed
select exists (
    select 1 from history
    where tracking_no = :tracking_no and partition = :partition and offset > :offset
);

-- name: set_resolved
update dead_letter set resolved_us = :resolved_us where partition = :partition and offset = :offset;

-- name: is_done
select exists (select 1 from history where partition = :partition and offset = :offset)
    or exists (select 1 from dead_letter where partition = :partition and offset = :offset);

-- name: set_next_offset
update progress set next_offset = :next_offset where partition = :partition;

-- name: set_end_seen
update progress set end_seen = :end_seen where partition = :partition and owner_epoch = :epoch;

-- name: get_progress
select partition, next_offset, owner_epoch, owner, end_seen from progress order by partition;

-- name: get_totals
select
    (select count(*) from history where run = :run or :run is null) as in_history,
    (select count(*) from history where backward and (run = :run or :run is null)) as backward,
    (select count(*) from history where skipped and (run = :run or :run is null)) as skipped,
    (select count(*) from dead_letter where run = :run or :run is null) as dead_letters,
    (select count(*) from dead_letter where parked and (run = :run or :run is null)) as parked;

-- name: get_runs
select run, started_us, workers, version_check, dispatch, gate, selective, tick_us, zero_us from run order by run;

-- name: get_shipments
select tracking_no, line, state, version, arrival_order from shipment order by tracking_no;

-- name: get_history
select step, partition, offset, tracking_no, line, state, version, duration, arrival_order,
       version_before, version_after, backward, skipped, run, worker, owner_epoch,
       delivery, started_us, finished_us, applied_us
from history order by step;

-- name: get_dead_letters
select partition, offset, key, value, reason, parked, run, worker, owner_epoch, kept_us, sent_us, resolved_us
from dead_letter order by partition, offset;
