package dev.millrace.generator.sampling;

import dev.millrace.api.environment.Environment;
import dev.millrace.generator.environment.Environments;
import dev.millrace.log.LogConnection;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;

/** Accepts or refuses a record of the prompts topic, so that no accepted prompt can fail in a slot. Thread-safe. */
public final class PromptCheck {
    static final int MAX_SAMPLES = 4096;

    private final RunIdentity run;
    private final Deserializer<PromptRequest> requests;
    private final Environments environments;
    private final String tokenizerHash;
    private final int vocabSize;
    private final int capacityTokens;
    private final Function<SamplingParameters, Optional<String>> refusals;
    private final String unrouted;

    /**
     * @param refusals why the engine cannot sample with some parameters; empty if it can
     * @param unrouted why no routing can be recorded; empty if it can
     */
    public PromptCheck(
            LogConnection connection,
            Environments environments,
            String tokenizerHash,
            int vocabSize,
            int capacityTokens,
            Function<SamplingParameters, Optional<String>> refusals,
            String unrouted) {
        this.run = connection.run();
        this.requests = AvroSerde.of(PromptRequest.class, connection.registry()).deserializer();
        this.environments = environments;
        this.tokenizerHash = tokenizerHash;
        this.vocabSize = vocabSize;
        this.capacityTokens = capacityTokens;
        this.refusals = refusals;
        this.unrouted = unrouted;
    }

    PromptReading read(ConsumerRecord<byte[], byte[]> record) {
        PromptRequest request;
        try {
            request = requests.deserialize(record.topic(), record.value());
        } catch (MalformedRecordException e) {
            return new RefusedPrompt(record, Refusal.of(RefusalReason.UNREADABLE, "", String.valueOf(e.getMessage())));
        }
        if (request == null) {
            return new RefusedPrompt(record, Refusal.of(RefusalReason.UNREADABLE, "", "the record has no value"));
        }
        return new Reading(record, request).check();
    }

    private final class Reading {
        private final ConsumerRecord<byte[], byte[]> record;
        private final PromptRequest request;

        Reading(ConsumerRecord<byte[], byte[]> record, PromptRequest request) {
            this.record = record;
            this.request = request;
        }

        PromptReading check() {
            if (!request.getRunId().equals(run.runId())) {
                return refuse(
                        RefusalReason.WRONG_RUN,
                        "run_id",
                        "it belongs to run " + request.getRunId() + ", not to " + run.runId());
            }
            if (request.getEpoch() != run.epoch()) {
                return refuse(
                        RefusalReason.WRONG_EPOCH,
                        "epoch",
                        "it belongs to epoch " + request.getEpoch() + ", not to " + run.epoch());
            }
            String key = record.key() == null ? "" : new String(record.key(), StandardCharsets.UTF_8);
            if (request.getGroupId().isEmpty() || !request.getGroupId().equals(key)) {
                return refuse(
                        RefusalReason.WRONG_KEY,
                        "group_id",
                        "the key '" + key + "' is not the group id '" + request.getGroupId() + "'");
            }
            if (!request.getTokenizerHash().equals(tokenizerHash)) {
                return refuse(
                        RefusalReason.WRONG_TOKENIZER,
                        "tokenizer_hash",
                        "its tokens belong to the vocabulary " + request.getTokenizerHash() + ", the policy's is "
                                + tokenizerHash);
            }
            if (request.getOrdinal() < 0) {
                return refuse(RefusalReason.IDENTITY, "ordinal", "ordinal must be at least 0: " + request.getOrdinal());
            }
            if (request.getSamples() < 1 || request.getSamples() > MAX_SAMPLES) {
                return refuse(
                        RefusalReason.IDENTITY,
                        "samples",
                        "samples must be 1 to " + MAX_SAMPLES + ": " + request.getSamples());
            }
            if (request.getImages() != null && !request.getImages().isEmpty()) {
                return refuse(
                        RefusalReason.UNSUPPORTED,
                        "images",
                        "it has " + request.getImages().size() + " images, which the engine does not see");
            }
            return checkSampling();
        }

        private PromptReading checkSampling() {
            SamplingParameters sampling = request.getSampling();
            float temperature = (float) sampling.getTemperature(); // as the engine takes it
            if (!(temperature > 0 && temperature < Float.POSITIVE_INFINITY)) {
                return refuse(
                        RefusalReason.SAMPLING,
                        "sampling.temperature",
                        "temperature must be finite and above 0: " + sampling.getTemperature());
            }
            if (sampling.getTopK() < 0) {
                return refuse(
                        RefusalReason.SAMPLING, "sampling.top_k", "top_k must be at least 0: " + sampling.getTopK());
            }
            if (!((float) sampling.getTopP() > 0 && sampling.getTopP() <= 1)) {
                return refuse(
                        RefusalReason.SAMPLING,
                        "sampling.top_p",
                        "top_p must be above 0 and at most 1: " + sampling.getTopP());
            }
            if (!(sampling.getMinP() >= 0 && sampling.getMinP() <= 1)) {
                return refuse(
                        RefusalReason.SAMPLING,
                        "sampling.min_p",
                        "min_p must be at least 0 and at most 1: " + sampling.getMinP());
            }
            if (sampling.getMaxTokens() < 1) {
                return refuse(
                        RefusalReason.SAMPLING,
                        "sampling.max_tokens",
                        "max_tokens must be at least 1: " + sampling.getMaxTokens());
            }
            Optional<String> refusal = refusals.apply(sampling);
            if (refusal.isPresent()) {
                return refuse(RefusalReason.UNSUPPORTED, "sampling", refusal.get());
            }
            return checkRecording(sampling);
        }

        /** What is to be recorded of each draw. */
        private PromptReading checkRecording(SamplingParameters sampling) {
            if (sampling.getKeepSamplingMask()
                    && sampling.getTopK() == 0
                    && (float) sampling.getTopP() == 1f
                    && (float) sampling.getMinP() == 0f) {
                return refuse(
                        RefusalReason.SAMPLING,
                        "sampling.keep_sampling_mask",
                        "keep_sampling_mask must be false with top_k=0, top_p=" + sampling.getTopP() + " and min_p="
                                + sampling.getMinP() + ", which leave out no token: true");
            }
            if (sampling.getTopLogProbs() < 0 || sampling.getTopLogProbs() > vocabSize) {
                return refuse(
                        RefusalReason.SAMPLING,
                        "sampling.top_log_probs",
                        "top_log_probs must be at least 0 and at most the " + vocabSize + " tokens of the vocabulary: "
                                + sampling.getTopLogProbs());
            }
            if (sampling.getRecordRouting() && !unrouted.isEmpty()) {
                return refuse(
                        RefusalReason.SAMPLING,
                        "sampling.record_routing",
                        "record_routing must be false, since " + unrouted + ": true");
            }
            return checkTokens();
        }

        private PromptReading checkTokens() {
            int length;
            try {
                length = PackedInts.length(request.getPromptTokens());
            } catch (IllegalArgumentException e) {
                return refuse(RefusalReason.TOKENS, "prompt_tokens", String.valueOf(e.getMessage()));
            }
            if (length == 0) {
                return refuse(RefusalReason.TOKENS, "prompt_tokens", "a prompt needs at least one token");
            }
            long needed = (long) length + request.getSampling().getMaxTokens();
            if (needed > capacityTokens) {
                return refuse(
                        RefusalReason.CAPACITY,
                        "sampling.max_tokens",
                        "a prompt of " + length + " tokens and max_tokens="
                                + request.getSampling().getMaxTokens() + " need " + needed + " positions, a slot has "
                                + capacityTokens + " (capacity_tokens)");
            }
            int[] tokens = PackedInts.toArray(request.getPromptTokens());
            for (int i = 0; i < tokens.length; i++) {
                if (tokens[i] < 0 || tokens[i] >= vocabSize) {
                    return refuse(
                            RefusalReason.TOKENS,
                            "prompt_tokens[" + i + "]",
                            "token " + tokens[i] + " is not among the " + vocabSize + " of the vocabulary");
                }
            }
            return checkEnvironment(tokens);
        }

        private PromptReading checkEnvironment(int[] tokens) {
            try {
                Environment environment = environments.playing(request);
                environment.requirePlayable(request.getEnvironmentState());
                return new AcceptedPrompt(
                        request,
                        tokens,
                        environment,
                        new TopicPartition(record.topic(), record.partition()),
                        record.offset());
            } catch (IllegalArgumentException e) {
                return refuse(RefusalReason.ENVIRONMENT, "environment", String.valueOf(e.getMessage()));
            }
        }

        private RefusedPrompt refuse(RefusalReason reason, String field, String message) {
            return new RefusedPrompt(
                    record, Refusal.of(reason, field, message).about(request.getRunId(), request.getEpoch(), ""));
        }
    }
}
