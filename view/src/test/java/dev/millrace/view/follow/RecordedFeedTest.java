package dev.millrace.view.follow;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.view.RecordedArchive;
import dev.millrace.view.follow.ViewedRun.Events;
import dev.millrace.view.follow.ViewedRun.IndexProgress;
import dev.millrace.view.follow.ViewedRun.RecordedFeed;
import dev.millrace.view.index.RecordIndexer;
import dev.millrace.view.index.RunIndex;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The order in which a run comes into its index. */
class RecordedFeedTest {
    @TempDir
    private Path folder;

    /** The recorded run, which records requests. */
    private record Watched(ArchivedRun of, List<String> asked) implements RecordedRun {
        @Override
        public RunIdentity run() {
            return of.run();
        }

        @Override
        public EpochLineage lineage() {
            return of.lineage();
        }

        @Override
        public RunTopics topics() {
            return of.topics();
        }

        @Override
        public SchemaRegistry registry() {
            return of.registry();
        }

        @Override
        public Optional<String> configuration() {
            return of.configuration();
        }

        @Override
        public List<TopicPartition> partitions(String topic) {
            return of.partitions(topic);
        }

        @Override
        public Range range(TopicPartition partition) {
            asked.add(partition.topic());
            return of.range(partition);
        }

        @Override
        public RecordCursor read(TopicPartition partition, long from) {
            asked.add(partition.topic() + " from " + (from - of.range(partition).from()));
            return of.read(partition, from);
        }

        @Override
        public RecordFetcher fetcher() {
            return of.fetcher();
        }

        @Override
        public boolean hasGrown() {
            return false;
        }

        @Override
        public void close() {
            of.close();
        }
    }

    @Test
    void shouldHaveTheNewestStepsBeforeAnythingElseIsLookedAt() {
        try (Watched run = new Watched(new ArchivedRun(RecordedArchive.FOLDER), new ArrayList<>());
                RunIndex index = RunIndex.open(folder)) {
            List<String> before = new ArrayList<>();
            List<Long> newest = new ArrayList<>();
            Events events = new Events();
            events.add(event -> {
                if (event.name().equals("steps") && before.isEmpty()) {
                    before.addAll(run.asked());
                    newest.addAll(index.numbers("SELECT batch FROM step ORDER BY batch"));
                }
            });
            List<IndexProgress> progress = new ArrayList<>();
            IndexFeed feed = new IndexFeed(
                    index,
                    new RecordIndexer(run.topics(), run.run().runId(), run.registry(), Optional.empty()),
                    events,
                    progress::add);
            assertThat(new RecordedFeed(run, feed, () -> false, 4).read()).isTrue();

            String log = run.topics().trainingLog();
            assertThat(before).isNotEmpty().allMatch(asked -> asked.startsWith(log));
            assertThat(newest)
                    .as("the newest alone")
                    .isNotEmpty()
                    .hasSizeLessThan(6)
                    .contains(5L);
            assertThat(index.numbers("SELECT count(*) FROM step")).containsExactly(6L);
            assertThat(progress.get(progress.size() - 1).isWhole()).isTrue();
        }
    }

    @Test
    void shouldGoOnWhereItWasToldToStop() {
        try (Watched run = new Watched(new ArchivedRun(RecordedArchive.FOLDER), new ArrayList<>());
                RunIndex index = RunIndex.open(folder)) {
            RecordIndexer indexer =
                    new RecordIndexer(run.topics(), run.run().runId(), run.registry(), Optional.empty());
            List<IndexProgress> progress = new ArrayList<>();
            int[] looks = {0};
            IndexFeed feed = new IndexFeed(index, indexer, new Events(), progress::add);
            assertThat(new RecordedFeed(run, feed, () -> ++looks[0] > 20, 400).read())
                    .isFalse();
            assertThat(progress).noneMatch(IndexProgress::isWhole);
            assertThat(new RecordedFeed(run, feed, () -> false, 400).read()).isTrue();
            assertThat(index.numbers("SELECT count(*) FROM rollout")).containsExactly(372L);
        }
    }
}
