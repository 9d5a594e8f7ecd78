package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/**
 * A double of OpenEnv's server, as {@code src/openenv/core/env_server} of openenv-core 0.2 describes its WebSocket: text frames of
 * {@code {"type": "reset" | "step" | "state" | "close", "data": {...}}}. It refuses what the real one refuses: other types, fields that a
 * message has not.
 */
final class OpenEnvServer implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

    /** Closes the connection in the place of an answer. */
    static final String CLOSE = "close";

    final List<ObjectNode> asked = new CopyOnWriteArrayList<>();
    final AtomicInteger open = new AtomicInteger();
    final AtomicInteger mostOpen = new AtomicInteger();
    private final ServerSocket listening;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final Function<ObjectNode, String> answer;

    OpenEnvServer(Function<ObjectNode, String> answer) {
        this.answer = answer;
        try {
            this.listening = new ServerSocket(0, 16, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        threads.submit(this::accept);
    }

    String url() {
        return "ws://127.0.0.1:" + listening.getLocalPort() + "/ws";
    }

    private Void accept() throws IOException {
        while (true) {
            Socket socket = listening.accept();
            threads.submit(() -> serve(socket));
        }
    }

    private Void serve(Socket socket) throws IOException {
        mostOpen.accumulateAndGet(open.incrementAndGet(), Math::max);
        try (socket) {
            InputStream in = socket.getInputStream();
            OutputStream out = socket.getOutputStream();
            shakeHands(in, out);
            DataInputStream frames = new DataInputStream(in);
            for (String text = frame(frames); text != null; text = frame(frames)) {
                ObjectNode message = (ObjectNode) JSON.readTree(text);
                asked.add(message);
                if (message.path("type").asText().equals("close")) {
                    return null;
                }
                String said = isValid(message)
                        ? answer.apply(message)
                        : "{\"type\": \"error\", \"data\": {\"message\": \"Invalid message\", \"code\": \"VALIDATION_ERROR\"}}";
                if (said.equals(CLOSE)) {
                    return null;
                }
                send(out, said);
            }
        } finally {
            open.decrementAndGet();
        }
        return null;
    }

    private static boolean isValid(ObjectNode message) {
        return switch (message.path("type").asText()) {
            case "reset", "step" -> message.size() == 2 && message.path("data").isObject();
            case "state" -> message.size() == 1;
            default -> false;
        };
    }

    private static void shakeHands(InputStream in, OutputStream out) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.US_ASCII), 1);
        String key = "";
        for (String line = lines.readLine(); line != null && !line.isEmpty(); line = lines.readLine()) {
            if (line.toLowerCase(java.util.Locale.ROOT).startsWith("sec-websocket-key:")) {
                key = line.substring(line.indexOf(':') + 1).strip();
            }
        }
        String accept;
        try {
            accept = Base64.getEncoder()
                    .encodeToString(MessageDigest.getInstance("SHA-1")
                            .digest((key + MAGIC).getBytes(StandardCharsets.US_ASCII)));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
        out.write(
                ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
                                + accept + "\r\n\r\n")
                        .getBytes(StandardCharsets.US_ASCII));
        out.flush();
    }

    /** The text of the next frame; null where the connection is over. */
    private static String frame(DataInputStream in) throws IOException {
        try {
            int opcode = in.readUnsignedByte() & 0xF;
            int length = in.readUnsignedByte() & 0x7F;
            if (length == 126) {
                length = in.readUnsignedShort();
            } else if (length == 127) {
                length = Math.toIntExact(in.readLong());
            }
            byte[] mask = in.readNBytes(4);
            byte[] payload = in.readNBytes(length);
            for (int i = 0; i < payload.length; i++) {
                payload[i] ^= mask[i % 4];
            }
            return opcode == 8 ? null : new String(payload, StandardCharsets.UTF_8);
        } catch (EOFException e) {
            return null;
        }
    }

    private static void send(OutputStream out, String text) throws IOException {
        byte[] payload = text.getBytes(StandardCharsets.UTF_8);
        out.write(0x81);
        if (payload.length < 126) {
            out.write(payload.length);
        } else {
            out.write(126);
            out.write(payload.length >> 8);
            out.write(payload.length & 0xFF);
        }
        out.write(payload);
        out.flush();
    }

    @Override
    public void close() throws IOException {
        listening.close();
        threads.shutdownNow();
    }
}
