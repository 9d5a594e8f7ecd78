package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.cli.audit.RunInFolder;
import dev.millrace.cli.audit.RunInFolder.Said;
import dev.millrace.infra.broker.EmbeddedBroker;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StoppedRunIT {
    @TempDir
    private static Path folder;

    @Test
    void shouldStopInOrderAndGoOn() throws Exception {
        Path directory = folder.resolve("asked");
        try (EmbeddedBroker cluster = EmbeddedBroker.start(folder.resolve("cluster"))) {
            List<String> on = List.of("--bootstrap-servers", cluster.bootstrapServers());
            List<String> small = List.of(
                    "--set",
                    "run.id=asked",
                    "--set",
                    "admission.batch_sequences=32",
                    "--set",
                    "topology.batch.sequences=32");
            String[] endless = Stream.of(on, small, List.of("--max-steps", "100000", "--set", "goal.mean_reward=0"))
                    .flatMap(List::stream)
                    .toArray(String[]::new);
            try (TrainProcess process = TrainProcess.train(directory, endless)) {
                process.awaitStep(1);
                List<String> stop = List.of("stop", "--run-dir", directory.toString());
                Said said = RunInFolder.said(stop);
                assertThat(said.status()).as(said.toString()).isZero();
                assertThat(said.words())
                        .containsPattern("run asked stopped after [0-9.ms ]+ at version [1-9]\\d*, because ");
                assertThat(process.awaitExit(TrainProcess.PATIENCE)).isEqualTo(130);
                assertThat(RunInFolder.said(stop).status())
                        .as("there is nothing to stop")
                        .isEqualTo(5);
            }
            long reached;
            try (TrainProcess process = TrainProcess.train(directory, endless)) {
                reached = process.awaitStep(3);
                Said said = said(on, "stop", "--run", "asked");
                assertThat(said.status()).as(said.toString()).isZero();
                assertThat(said.words())
                        .contains("asked to stop; seen were: ", "no role of run asked is seen any more");
                assertThat(process.awaitExit(TrainProcess.PATIENCE))
                        .as("as after Ctrl-C")
                        .isEqualTo(130);
            }
            JsonNode state = said(on, "runs", "--run", "asked", "--json").json().get(0);
            assertThat(state.path("state").asText()).isEqualTo("idle");
            long end = state.path("newest_version").asLong() + 1;
            assertThat(end).isGreaterThan(reached);
            Said further = said(
                    Stream.concat(on.stream(), small.stream()).toList(),
                    "train",
                    "--plain",
                    "--run-dir",
                    directory.toString(),
                    "--max-steps",
                    Long.toString(end));
            assertThat(further.status())
                    .as("a request is for those that ran when it came: " + further)
                    .isZero();
        }
    }

    private static Said said(List<String> options, String... command) {
        return RunInFolder.said(
                Stream.concat(Stream.of(command), options.stream()).toList());
    }
}
