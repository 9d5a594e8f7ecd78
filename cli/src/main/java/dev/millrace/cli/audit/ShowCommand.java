package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.trace.DeadLetter;
import dev.millrace.audit.trace.DeadLetterFilter;
import dev.millrace.audit.trace.DeadLetterTopic;
import dev.millrace.audit.trace.DeadLetterTopic.Opened;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.report.Lines;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.runtime.report.RecordJson;
import dev.millrace.schemas.run.RunSchemas;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import org.apache.avro.Schema;
import org.apache.avro.specific.SpecificData;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code millrace dead-letters show}. */
@Command(
        name = "show",
        description = "Shows one refused record: reason, headers and content, in hexadecimal if it cannot be decoded.",
        footer = {"", "Exit codes: 0 it is shown; 5 there is no such letter."})
final class ShowCommand extends ScreenCommand {
    private static final int HEX_BYTES_A_LINE = 16;
    private static final int MOST_HEX_BYTES = 4096;

    @Mixin
    private RunOptions run;

    @Parameters(paramLabel = "LETTER", description = "Number in 'dead-letters list', or source, such as rollouts-0@12.")
    private String name;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Override
    public Integer call() {
        try (AuditedRun audited = run.read()) {
            RunRecords records = audited.records();
            List<Opened> found = new DeadLetterTopic(records, RunOptions.PATIENCE)
                    .open(new DeadLetterFilter(
                            List.of(name), "", "", records.topics().prefix()));
            if (found.isEmpty()) {
                throw new NotFoundException("there is no dead letter " + name + " in run "
                        + records.run().runId()
                        + "; 'millrace dead-letters list' prints the numbers");
            }
            for (Opened opened : found) {
                Optional<SpecificRecord> record = decoded(records, opened);
                if (json) {
                    out().println(json(opened, record).toPrettyString());
                } else {
                    print(opened, record, records.topics().prefix());
                }
            }
            return 0;
        }
    }

    private static Optional<SpecificRecord> decoded(RunRecords records, Opened opened) {
        Schema schema = RunSchemas.byTopic(records.topics()).get(opened.letter().sourceTopic());
        if (schema == null) {
            return Optional.empty();
        }
        Class<?> type = SpecificData.get().getClass(schema);
        return TopicScan.readable(
                        AvroSerde.of(type.asSubclass(SpecificRecord.class), records.registry())
                                .deserializer(),
                        opened.record())
                .map(SpecificRecord.class::cast);
    }

    private void print(Opened opened, Optional<SpecificRecord> record, String prefix) {
        DeadLetter letter = opened.letter();
        out().println("letter " + letter.offset() + ", refused at " + Lines.time(letter.writtenAtMs()));
        labelled("reason", letter.reason() + (letter.field().isEmpty() ? "" : ", field " + letter.field()));
        labelled("", letter.message());
        labelled(
                "from",
                ListCommand.without(prefix, letter.source())
                        + (letter.sourceTimestampMs() < 0
                                ? ""
                                : ", written at " + Lines.time(letter.sourceTimestampMs())));
        labelled(
                "run",
                (letter.runId().isEmpty() ? "not known" : letter.runId())
                        + (letter.epoch() < 0 ? "" : ", epoch " + letter.epoch()));
        labelled("rollout", letter.rolloutId().isEmpty() ? "not known" : letter.rolloutId());
        if (opened.newOffset() >= 0) {
            labelled(
                    "redriven",
                    "as " + ListCommand.without(prefix, letter.sourceTopic()) + "-" + letter.sourcePartition() + "@"
                            + opened.newOffset());
        }
        labelled(
                "key",
                opened.record().key() == null ? "none" : text(opened.record().key()));
        for (Header header : opened.record().headers()) {
            if (!header.key().startsWith("millrace.error.")) {
                labelled("header", header.key() + ": " + (header.value() == null ? "none" : text(header.value())));
            }
        }
        if (record.isPresent()) {
            out().println(RecordJson.of(record.get()).toPrettyString());
        } else if (opened.record().value() == null) {
            labelled("value", "none");
        } else {
            labelled(
                    "value",
                    opened.record().value().length + " bytes that are no record of that topic"
                            + (opened.record().value().length > MOST_HEX_BYTES
                                    ? ", the first " + MOST_HEX_BYTES + ":"
                                    : ":"));
            hex(opened.record().value());
        }
    }

    private static String text(byte[] bytes) {
        String text = new String(bytes, StandardCharsets.UTF_8);
        return text.chars().allMatch(c -> c >= ' ' && c != 0xFFFD)
                ? text
                : HexFormat.of().formatHex(bytes);
    }

    private void hex(byte[] bytes) {
        HexFormat spaced = HexFormat.ofDelimiter(" ");
        for (int at = 0; at < Math.min(bytes.length, MOST_HEX_BYTES); at += HEX_BYTES_A_LINE) {
            int end = Math.min(bytes.length, at + HEX_BYTES_A_LINE);
            StringBuilder readable = new StringBuilder();
            for (int i = at; i < end; i++) {
                readable.append(bytes[i] >= ' ' && bytes[i] < 127 ? (char) bytes[i] : '.');
            }
            out().println(String.format("  %06x  %-47s  %s", at, spaced.formatHex(bytes, at, end), readable));
        }
    }

    private static ObjectNode json(Opened opened, Optional<SpecificRecord> record) {
        ConsumerRecord<byte[], byte[]> raw = opened.record();
        ObjectNode json = new ObjectMapper().createObjectNode();
        ListCommand.put(json, opened.letter(), opened.newOffset());
        json.put("key", raw.key() == null ? null : text(raw.key()));
        if (record.isPresent()) {
            json.set("record", RecordJson.of(record.get()));
        } else {
            json.put("hex", raw.value() == null ? null : HexFormat.of().formatHex(raw.value()));
        }
        return json;
    }
}
