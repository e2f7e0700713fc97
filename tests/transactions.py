"""Records written in transactions, which leave offsets without a record."""

from collections.abc import Sequence

from confluent_kafka import Producer
from trial import Trial

from lanes.event import StateEvent, encode


class Writer:
    """Writes events in transactions that are committed or aborted."""

    def __init__(self, trial: Trial) -> None:
        settings = {**trial.connection.client(), "transactional.id": trial.topic_name}
        self._producer = Producer({**settings, "batch.num.messages": 1})
        self._producer.init_transactions(20)
        self._topic = trial.topic_name

    def write(self, events: Sequence[StateEvent], *, commit: bool) -> None:
        """One transaction in partition 0."""
        self._producer.begin_transaction()
        for event in events:
            self._producer.produce(self._topic, encode(event), event.tracking_no.encode(), 0)
        assert self._producer.flush(10) == 0
        if commit:
            self._producer.commit_transaction(20)
        else:
            self._producer.abort_transaction(20)
