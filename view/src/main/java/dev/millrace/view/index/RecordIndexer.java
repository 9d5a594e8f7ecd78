package dev.millrace.view.index;

import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.RunTopics;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Puts records of a run into its index, in whatever order they come, also twice. What does not decode or is of another run is passed over: the run's
 * own roles have refused it. Owned by one thread.
 */
public final class RecordIndexer {
    private final RunTopics topics;
    private final StepIndexer steps;
    private final RolloutIndexer rollouts;
    private final VersionIndexer versions;
    private final LetterIndexer letters;
    private final EvaluationIndex evaluations;

    public RecordIndexer(RunTopics topics, String runId, SchemaRegistry registry) {
        OwnRecords records = new OwnRecords(runId, registry);
        this.topics = topics;
        this.steps = new StepIndexer(records);
        this.rollouts = new RolloutIndexer(topics, records);
        this.versions = new VersionIndexer(records);
        this.evaluations = new EvaluationIndex(records);
        this.letters = new LetterIndexer(topics);
    }

    /** Topics that are few and short records, of which the newest matter first. */
    public static List<String> newest(RunTopics topics) {
        return List.of(
                topics.trainingLog(),
                topics.serving(),
                topics.policyVersions(),
                topics.evaluations(),
                topics.deadLetters());
    }

    /** Topics with a record or more for each rollout. */
    public static List<String> many(RunTopics topics) {
        return List.of(topics.batches(), topics.rollouts(), topics.outcomes(), topics.trajectories(), topics.prompts());
    }

    /** Where to read on from; empty for the beginning. */
    public static Optional<Long> position(RunIndex index, String topic, int partition) {
        return index.numbers("SELECT next FROM position WHERE topic = ? AND partition = ?", topic, partition).stream()
                .findFirst();
    }

    /** What was put in by one call. */
    public record Taken(boolean steps, boolean letters) {}

    /**
     * Puts records in, in one transaction.
     *
     * @param records of any topics
     * @param positions whether to note that everything before them is in, by which a restart goes on
     */
    public Taken take(RunIndex index, Iterable<ConsumerRecord<byte[], byte[]>> records, boolean positions) {
        boolean[] found = new boolean[2];
        index.write(statements -> {
            Map<String, Map<Integer, Long>> next = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                one(record, statements, found);
                next.computeIfAbsent(record.topic(), topic -> new HashMap<>())
                        .merge(record.partition(), record.offset() + 1, Math::max);
            }
            if (positions) {
                for (Map.Entry<String, Map<Integer, Long>> topic : next.entrySet()) {
                    for (Map.Entry<Integer, Long> partition : topic.getValue().entrySet()) {
                        statements.run(
                                "INSERT INTO position(topic, partition, next) VALUES(?, ?, ?)"
                                        + " ON CONFLICT DO UPDATE SET next = excluded.next",
                                topic.getKey(),
                                partition.getKey(),
                                partition.getValue());
                    }
                }
            }
        });
        if (found[0]) {
            index.noteSteps();
        }
        return new Taken(found[0], found[1]);
    }

    private void one(ConsumerRecord<byte[], byte[]> record, IndexStatements statements, boolean[] found)
            throws SQLException {
        String topic = record.topic();
        if (topic.equals(topics.trainingLog())) {
            found[0] |= steps.step(record, statements);
        } else if (topic.equals(topics.rollouts())) {
            rollouts.rollout(record, statements);
        } else if (topic.equals(topics.trajectories())) {
            rollouts.trajectory(record, statements);
        } else if (topic.equals(topics.batches())) {
            rollouts.batch(record, statements);
        } else if (topic.equals(topics.outcomes())) {
            rollouts.outcome(record, statements);
        } else if (topic.equals(topics.prompts())) {
            rollouts.prompt(record, statements);
        } else if (topic.equals(topics.policyVersions())) {
            versions.version(record, statements);
        } else if (topic.equals(topics.serving())) {
            versions.serving(record, statements);
        } else if (topic.equals(topics.evaluations())) {
            found[0] |= evaluations.evaluation(record, statements);
        } else if (topic.equals(topics.deadLetters())) {
            found[1] |= letters.letter(record, statements);
        }
    }
}
