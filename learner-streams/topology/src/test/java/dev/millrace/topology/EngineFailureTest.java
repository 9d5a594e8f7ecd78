package dev.millrace.topology;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.topology.TopologyRunner.EngineFailure;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.streams.errors.MissingSourceTopicException;
import org.apache.kafka.streams.errors.StreamsException;
import org.junit.jupiter.api.Test;

class EngineFailureTest {
    private static StreamsException wrapped(Throwable cause) {
        return new StreamsException("in a thread", new StreamsException("in a task", cause));
    }

    @Test
    void shouldReplaceAThreadWhoseFailureMayPassHoweverItIsWrapped() {
        assertThat(EngineFailure.isRetriable(new TimeoutException("no answer"))).isTrue();
        assertThat(EngineFailure.isRetriable(wrapped(new TimeoutException("no answer"))))
                .isTrue();
    }

    @Test
    void shouldReplaceNoThreadThatFailedOfItself() {
        assertThat(EngineFailure.isRetriable(new StreamsException("a state that cannot be")))
                .isFalse();
        assertThat(EngineFailure.isRetriable(wrapped(new IllegalStateException("a bug"))))
                .isFalse();
    }

    @Test
    void shouldSayThatATopicIsNotThere() {
        assertThat(EngineFailure.explained(wrapped(new MissingSourceTopicException("rollouts is missing"))))
                .hasMessage("a topic of the run does not exist: rollouts is missing; create the run first");
    }

    @Test
    void shouldSayWhatWasWrappedOrOfWhichKindItWasWhereItSaysNothing() {
        assertThat(EngineFailure.explained(wrapped(new IllegalStateException("a bug"))))
                .hasMessage("the topology stopped: a bug");
        assertThat(EngineFailure.explained(wrapped(new IllegalStateException())))
                .hasMessage("the topology stopped: IllegalStateException");
    }
}
