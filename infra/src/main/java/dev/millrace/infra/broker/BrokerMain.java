package dev.millrace.infra.broker;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;

/**
 * The child's side of {@link BrokerProcess}: says {@code READY host:port} on standard output and serves until
 * standard input ends, which it also does when the parent dies, or until the broker cannot go on. A line of input, transactional id
 * and topics, is a request to {@link EmbeddedBroker#sync}, answered by {@code SYNCED} and what prevented it.
 */
final class BrokerMain {
    static final String READY = "READY ";
    static final String FAILED = "FAILED ";
    static final String SYNCED = "SYNCED ";
    private static final int CLUSTER = 7;

    private BrokerMain() {}

    /**
     * Arguments: directory, port, largest record, least free space, limits for start and stop, durability; in a cluster which node it is, and then
     * any settings of Kafka's, {@code name=value}.
     */
    public static void main(String[] args) {
        BrokerConfig config = new BrokerConfig(
                Integer.parseInt(args[1]),
                Integer.parseInt(args[2]),
                Long.parseLong(args[3]),
                Long.parseLong(args[4]),
                Long.parseLong(args[5]),
                Durability.valueOf(args[6]));
        int status = serve(
                Path.of(args[0]),
                config,
                args.length > CLUSTER ? Optional.of(Membership.parse(args[CLUSTER])) : Optional.empty(),
                Arrays.stream(args)
                        .skip(CLUSTER + 1L)
                        .map(setting -> setting.split("=", 2))
                        .collect(Collectors.toMap(setting -> setting[0], setting -> setting[1])));
        System.out.flush();
        Runtime.getRuntime().halt(status); // a broker that hangs in its stop must not keep the process
    }

    private static int serve(
            Path directory, BrokerConfig config, Optional<Membership> member, Map<String, String> settings) {
        EmbeddedBroker broker;
        try {
            broker = EmbeddedBroker.start(directory, config, member, settings);
        } catch (BrokerException e) {
            System.out.println(FAILED + e.getMessage());
            return 1;
        }
        try (broker) {
            System.out.println(READY + broker.bootstrapServers());
            return untilEnd(broker);
        }
    }

    private static int untilEnd(EmbeddedBroker broker) {
        CompletableFuture<Integer> failed = broker.failure()
                .thenApply(e -> {
                    System.out.println(FAILED + e.getMessage());
                    return 1;
                })
                .toCompletableFuture();
        CompletableFuture<Integer> ended = new CompletableFuture<>();
        Thread input = new Thread(
                () -> {
                    answerUntilEndOfInput(broker);
                    ended.complete(0);
                },
                "end of input");
        input.setDaemon(true);
        input.start();
        return (int) CompletableFuture.anyOf(failed, ended).join();
    }

    private static void answerUntilEndOfInput(EmbeddedBroker broker) {
        try (BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String request = requests.readLine(); request != null; request = requests.readLine()) {
                System.out.println(SYNCED + sync(broker, List.of(request.split(" "))));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String sync(EmbeddedBroker broker, List<String> request) {
        try {
            broker.sync(request.subList(1, request.size()), request.get(0));
            return "";
        } catch (RuntimeException e) { // of the disk, too
            return String.valueOf(e.getMessage());
        }
    }

    static String[] arguments(Path directory, BrokerConfig config) {
        return new String[] {
            directory.toString(),
            Integer.toString(config.port()),
            Integer.toString(config.maxRecordBytes()),
            Long.toString(config.minFreeBytes()),
            Long.toString(config.startTimeoutMs()),
            Long.toString(config.stopTimeoutMs()),
            config.durability().name()
        };
    }
}
