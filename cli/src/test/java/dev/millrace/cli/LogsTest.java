package dev.millrace.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.logging.log4j.ThreadContext;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.ConsoleAppender;
import org.apache.logging.log4j.core.appender.RollingFileAppender;
import org.apache.logging.log4j.core.appender.rolling.DefaultRolloverStrategy;
import org.apache.logging.log4j.core.appender.rolling.SizeBasedTriggeringPolicy;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine.ParameterException;

/** The lines that {@code log4j2.xml} makes of the properties that {@link Logs} sets, in a logger context of its own. */
class LogsTest {
    private static final String LEARNER = "dev.millrace.learner.Learner";
    private static final String KAFKA = "org.apache.kafka.clients.NetworkClient";
    private static final List<String> PROPERTIES = List.of(
            "millrace.log", "millrace.log.format", "millrace.log.level", "millrace.log.others", "millrace.log.broker");

    private final Map<String, String> before = new HashMap<>();

    @TempDir
    private Path folder;

    @BeforeEach
    void keepProperties() {
        PROPERTIES.forEach(name -> before.put(name, System.getProperty(name)));
        PROPERTIES.forEach(System::clearProperty);
    }

    @AfterEach
    void restoreProperties() {
        before.forEach((name, value) -> {
            if (value == null) {
                System.clearProperty(name);
            } else {
                System.setProperty(name, value);
            }
        });
        ThreadContext.clearMap();
    }

    private static LoggerContext opened() throws URISyntaxException {
        LoggerContext context = new LoggerContext(
                "test", null, LogsTest.class.getResource("/log4j2.xml").toURI());
        context.start();
        return context;
    }

    /** What a run of this name writes into its file. */
    private List<String> lines(String format) throws IOException, URISyntaxException {
        Path file = folder.resolve("millrace.log");
        System.setProperty("millrace.log", file.toString());
        System.setProperty("millrace.log.format", format);
        try (LoggerContext context = opened()) {
            assertThat(file).as("created with its first line").doesNotExist();
            ThreadContext.put("run", "r1");
            ThreadContext.put("role", "learner");
            ThreadContext.put("version", "12");
            context.getLogger(LEARNER).info("two\nlines");
            ThreadContext.clearMap();
            context.getLogger(KAFKA).warn("it failed", new IllegalStateException("away"));
        }
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
                .isEqualTo("rw-------");
        return Files.readAllLines(file);
    }

    @Test
    void shouldWriteRunRoleAndVersionIntoTheFileOfARun() throws Exception {
        List<String> lines = lines("text");
        assertThat(lines.get(0))
                .matches("\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}(Z|[+-]\\d\\d:\\d\\d) INFO  "
                        + "run=r1 role=learner version=12 Learner \\[.*] two\\\\nlines");
        assertThat(lines.get(1)).contains(" WARN  NetworkClient [", "] it failed");
        assertThat(lines.get(2)).isEqualTo("java.lang.IllegalStateException: away");
    }

    @Test
    void shouldWriteALineOfJsonForEach() throws Exception {
        List<String> lines = lines("json");
        assertThat(lines).hasSize(2);
        JsonNode first = new ObjectMapper().readTree(lines.get(0));
        assertThat(first.path("time").textValue()).matches("\\d{4}-.*T.*(Z|[+-]\\d\\d:\\d\\d)");
        assertThat(Stream.of("level", "run", "role", "version", "logger", "message")
                        .map(name -> first.path(name).textValue()))
                .containsExactly("INFO", "r1", "learner", "12", LEARNER, "two\nlines");
        JsonNode second = new ObjectMapper().readTree(lines.get(1));
        assertThat(second.has("run")).isFalse();
        assertThat(second.path("exception").textValue()).startsWith("java.lang.IllegalStateException: away");
    }

    @Test
    void shouldKeepThreeFullFilesOfARun() throws Exception {
        System.setProperty("millrace.log", folder.resolve("millrace.log").toString());
        try (LoggerContext context = opened()) {
            RollingFileAppender file = context.getConfiguration().getAppender("lines");
            assertThat(((SizeBasedTriggeringPolicy) file.getTriggeringPolicy()).getMaxFileSize())
                    .isEqualTo(50L << 20);
            assertThat(((DefaultRolloverStrategy) file.getManager().getRolloverStrategy()).getMaxIndex())
                    .isEqualTo(3);
        }
    }

    @Test
    void shouldWriteOurWarningsAloneToStandardErrorForOtherCommands() throws Exception {
        Logs.ofCommand(Main.commandLine(), false, Map.of());
        try (LoggerContext context = opened()) {
            ConsoleAppender console = context.getConfiguration().getAppender("lines");
            assertThat(console.getTarget()).isEqualTo(ConsoleAppender.Target.SYSTEM_ERR);
            assertThat(context.getLogger(LEARNER).isWarnEnabled()).isTrue();
            assertThat(context.getLogger(LEARNER).isInfoEnabled()).isFalse();
            assertThat(context.getLogger(KAFKA).isFatalEnabled()).isFalse();
            assertThat(context.getLogger("kafka.server.BrokerServer").isFatalEnabled())
                    .isFalse();
        }
    }

    @Test
    void shouldWriteMoreWhereItIsToBeVerbose() throws Exception {
        System.setProperty("millrace.log.level", "debug");
        System.setProperty("millrace.log.others", "warn");
        try (LoggerContext context = opened()) {
            assertThat(context.getLogger(LEARNER).isDebugEnabled()).isTrue();
            assertThat(context.getLogger(KAFKA).isWarnEnabled()).isTrue();
            assertThat(context.getLogger(KAFKA).isInfoEnabled()).isFalse();
        }
    }

    @Test
    void shouldRefuseAFormatThatIsNone() {
        assertThatThrownBy(() -> Logs.ofCommand(Main.commandLine(), false, Map.of("MILLRACE_LOG_FORMAT", "xml")))
                .isInstanceOf(ParameterException.class)
                .hasMessage("the environment's MILLRACE_LOG_FORMAT must be text or json: 'xml'");
    }
}
