package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.generator.environment.Environments;
import dev.millrace.log.LogConnection;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.junit.jupiter.api.Test;

class PromptCheckTest {
    private final InMemorySchemaRegistry registry = new InMemorySchemaRegistry();
    private final LogConnection connection = new LogConnection(
            Map.of("bootstrap.servers", "127.0.0.1:1"),
            new RunTopics("millrace."),
            new RunIdentity("run", 0, "policy"),
            registry);
    private final PromptCheck check = new PromptCheck(
            connection,
            Environments.builtIn(),
            Requests.HASH,
            16,
            12,
            sampling -> Optional.empty(),
            "the gateway records no routing");

    @Test
    void shouldAcceptWhatAdmissionReleases() {
        PromptReading reading = read(request -> {});
        assertThat(reading).isInstanceOfSatisfying(AcceptedPrompt.class, accepted -> {
            assertThat(accepted.tokens()).containsExactly(0, 4, 5, 2);
            assertThat(accepted.environment().name()).isEqualTo("fixed-answer");
            assertThat(accepted.partition().partition()).isEqualTo(3);
            assertThat(accepted.offset()).isEqualTo(17);
        });
    }

    @Test
    void shouldRefuseEachFieldWithItsReason() {
        refuses(RefusalReason.WRONG_RUN, "run_id", "other", r -> r.setRunId("other"));
        refuses(RefusalReason.WRONG_EPOCH, "epoch", "1", r -> r.setEpoch(1));
        refuses(RefusalReason.WRONG_KEY, "group_id", "0-8", r -> r.setGroupId("0-8"));
        refuses(RefusalReason.WRONG_TOKENIZER, "tokenizer_hash", "another", r -> r.setTokenizerHash("another"));
        refuses(RefusalReason.IDENTITY, "ordinal", "-1", r -> r.setOrdinal(-1));
        refuses(RefusalReason.IDENTITY, "samples", "1 to 4096: 0", r -> r.setSamples(0));
        refuses(
                RefusalReason.SAMPLING,
                "sampling.temperature",
                "0.0",
                r -> r.setSampling(Requests.sampling(0, 0, 1, 5)));
        refuses(
                RefusalReason.SAMPLING,
                "sampling.temperature",
                "NaN",
                r -> r.setSampling(Requests.sampling(Double.NaN, 0, 1, 5)));
        refuses(RefusalReason.SAMPLING, "sampling.top_k", "-2", r -> r.setSampling(Requests.sampling(1, -2, 1, 5)));
        refuses(RefusalReason.SAMPLING, "sampling.top_p", "1.5", r -> r.setSampling(Requests.sampling(1, 0, 1.5, 5)));
        refuses(RefusalReason.SAMPLING, "sampling.min_p", "-0.5", r -> r.setSampling(Requests.minP(-0.5)));
        refuses(RefusalReason.SAMPLING, "sampling.max_tokens", "0", r -> r.setSampling(Requests.sampling(1, 0, 1, 0)));
        refuses(
                RefusalReason.SAMPLING,
                "sampling.keep_sampling_mask",
                "leave out no token",
                r -> r.setSampling(Requests.recorded(0, 1, true, 0)));
        refuses(
                RefusalReason.SAMPLING,
                "sampling.top_log_probs",
                "at most the 16 tokens of the vocabulary: 17",
                r -> r.setSampling(Requests.recorded(0, 1, false, 17)));
        refuses(
                RefusalReason.SAMPLING,
                "sampling.record_routing",
                "record_routing must be false, since the gateway records no routing: true",
                r -> r.setSampling(new SamplingParameters(1.0, 0, 1.0, 5, 77L, false, 0, 0.0, true)));
        refuses(
                RefusalReason.CAPACITY,
                "sampling.max_tokens",
                "need 13 positions, a slot has 12",
                r -> r.setSampling(Requests.sampling(1, 0, 1, 9)));
        refuses(RefusalReason.TOKENS, "prompt_tokens", "at least one", r -> r.setPromptTokens(PackedInts.of()));
        refuses(RefusalReason.TOKENS, "prompt_tokens[1]", "token 16", r -> r.setPromptTokens(PackedInts.of(0, 16)));
        refuses(RefusalReason.ENVIRONMENT, "environment", "did you mean guess?", r -> r.setEnvironment("gues"));
        refuses(RefusalReason.ENVIRONMENT, "environment", "right answer in digits", r -> r.setEnvironmentState("?"));
    }

    @Test
    void shouldRefuseBytesThatAreNoPrompt() {
        assertThat(check.read(record("0-7", new byte[] {1, 2, 3, 4, 5, 6})))
                .isInstanceOfSatisfying(
                        RefusedPrompt.class,
                        refused -> assertThat(refused.reason()).isEqualTo(RefusalReason.UNREADABLE));
        assertThat(check.read(record("0-7", null)))
                .isInstanceOfSatisfying(
                        RefusedPrompt.class,
                        refused -> assertThat(refused.refusal().message()).isEqualTo("the record has no value"));
    }

    @Test
    void shouldKeepTheRecordAsItCameInTheDeadLetter() {
        byte[] bytes = {1, 2, 3, 4, 5, 6};
        ConsumerRecord<byte[], byte[]> record = record("0-7", bytes);
        record.headers().add("trace", new byte[] {9});
        record.headers().add("millrace.error.reason", "older".getBytes(StandardCharsets.UTF_8));
        ProducerRecord<byte[], byte[]> letter = ((RefusedPrompt) check.read(record))
                .deadLetter(new RunIdentity("run", 0, "policy"), "millrace.dead-letters");

        assertThat(letter.topic()).isEqualTo("millrace.dead-letters");
        assertThat(letter.value()).isEqualTo(bytes);
        assertThat(letter.key()).isEqualTo(record.key());
        assertThat(letter.headers().headers("trace")).hasSize(1);
        assertThat(letter.headers().headers("millrace.error.reason")).hasSize(1);
        assertThat(header(letter, "reason")).isEqualTo("unreadable");
        assertThat(header(letter, "source.topic")).isEqualTo("millrace.prompts");
        assertThat(header(letter, "source.partition")).isEqualTo("3");
        assertThat(header(letter, "source.offset")).isEqualTo("17");
        assertThat(header(letter, "message")).contains("the first byte");
    }

    private void refuses(RefusalReason reason, String field, String detail, Consumer<PromptRequest.Builder> change) {
        assertThat(read(change)).as("%s of %s", reason, field).isInstanceOfSatisfying(RefusedPrompt.class, refused -> {
            assertThat(refused.reason()).isEqualTo(reason);
            assertThat(refused.refusal().field()).isEqualTo(field);
            assertThat(refused.refusal().message()).contains(detail);
        });
    }

    private PromptReading read(Consumer<PromptRequest.Builder> change) {
        PromptRequest.Builder request = Requests.request(7, new int[] {0, 4, 5, 2}, "fixed-answer", "23", 8);
        change.accept(request);
        return check.read(record(
                "0-7",
                AvroSerde.of(PromptRequest.class, registry)
                        .serializer()
                        .serialize("millrace.prompts", request.build())));
    }

    private static ConsumerRecord<byte[], byte[]> record(String key, byte[] value) {
        return new ConsumerRecord<>("millrace.prompts", 3, 17, key.getBytes(StandardCharsets.UTF_8), value);
    }

    private static String header(ProducerRecord<byte[], byte[]> letter, String name) {
        return new String(letter.headers().lastHeader("millrace.error." + name).value(), StandardCharsets.UTF_8);
    }
}
