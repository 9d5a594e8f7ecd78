package dev.millrace.audit.trace;

import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.OffsetRange;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;

/**
 * Finds the prompt of a group in its partition.
 *
 * <p>Admission names a group {@code epoch-ordinal} and releases them in this order, so the place is bisected down to
 * {@value #NEAR} offsets, which are then read. Where that does not find it, because the name was made otherwise or the
 * prompt was redriven later, the whole partition is read.
 */
final class PromptSearch {
    private static final int NEAR = 2048;
    private static final Pattern NAME = Pattern.compile("(\\d{1,9})-(\\d{1,18})");

    private final TopicScan scan;
    private final ConsistentCut cut;
    private final TopicPartition partition;
    private final Deserializer<PromptRequest> prompts;

    PromptSearch(TopicScan scan, ConsistentCut cut, TopicPartition partition, Deserializer<PromptRequest> prompts) {
        this.scan = scan;
        this.cut = cut;
        this.partition = partition;
        this.prompts = prompts;
    }

    Optional<Found<PromptRequest>> find(String groupId) {
        OffsetRange all = cut.of(partition);
        Matcher name = NAME.matcher(groupId);
        if (name.matches() && all.end() - all.begin() > NEAR) {
            OffsetRange near = near(Integer.parseInt(name.group(1)), Long.parseLong(name.group(2)), all);
            Optional<Found<PromptRequest>> found = within(near, groupId);
            if (found.isPresent()) {
                return found;
            }
        }
        return within(all, groupId);
    }

    /** Narrows the range; its beginning is always before the prompt, or at it. */
    private OffsetRange near(int epoch, long ordinal, OffsetRange all) {
        long low = all.begin();
        long high = all.end();
        while (high - low > NEAR) {
            long middle = low + (high - low) / 2;
            Optional<Found<PromptRequest>> there = first(middle);
            if (there.isEmpty() || there.get().offset() >= high) {
                high = middle;
                continue;
            }
            PromptRequest prompt = there.get().value();
            boolean before = prompt.getEpoch() != epoch ? prompt.getEpoch() < epoch : prompt.getOrdinal() <= ordinal;
            if (before) {
                low = there.get().offset();
            } else {
                high = middle;
            }
        }
        return new OffsetRange(low, Math.min(all.end(), high + NEAR));
    }

    /** The first prompt at this offset or after it. */
    private Optional<Found<PromptRequest>> first(long offset) {
        AtomicReference<Found<PromptRequest>> found = new AtomicReference<>();
        scan.readWhile(Map.of(partition, offset), cut, record -> {
            decoded(record).ifPresent(prompt -> found.set(Found.of(prompt, record)));
            return found.get() == null;
        });
        return Optional.ofNullable(found.get());
    }

    private Optional<Found<PromptRequest>> within(OffsetRange range, String groupId) {
        byte[] key = groupId.getBytes(StandardCharsets.UTF_8);
        AtomicReference<Found<PromptRequest>> found = new AtomicReference<>();
        scan.readWhile(Map.of(partition, range.begin()), cut, record -> {
            if (Arrays.equals(key, record.key())) {
                decoded(record).ifPresent(prompt -> found.set(Found.of(prompt, record)));
            }
            return found.get() == null && record.offset() < range.end();
        });
        return Optional.ofNullable(found.get());
    }

    private Optional<PromptRequest> decoded(ConsumerRecord<byte[], byte[]> record) {
        try {
            return Optional.ofNullable(prompts.deserialize(record.topic(), record.value()));
        } catch (MalformedRecordException e) {
            return Optional.empty();
        }
    }
}
