"""Optional import of confluent-kafka; without it only a run's files can be read."""

from typing import Any

from millrace_rl.errors import MillraceError

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
except ModuleNotFoundError:

    class _Absent(type):
        def __getattr__(cls, name: str) -> str:
            return name

        def __call__(cls, *arguments: Any, **named: Any) -> Any:
            raise MillraceError("a cluster is read with confluent-kafka, which is not installed; 'pip install confluent-kafka', or read "
                                "a run's folder or an archive with Run.open")

    class KafkaException(Exception):  # type: ignore[no-redef]
        """Never raised."""

    class KafkaError(metaclass=_Absent):  # type: ignore[no-redef]
        """Never made."""

    Consumer = Producer = TopicPartition = KafkaError  # type: ignore[misc]

__all__ = ["Consumer", "KafkaError", "KafkaException", "Producer", "TopicPartition"]
