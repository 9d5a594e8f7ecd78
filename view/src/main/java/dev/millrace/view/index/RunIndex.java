package dev.millrace.view.index;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.BlockingDeque;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.atomic.AtomicLong;
import org.sqlite.SQLiteConfig;
import org.sqlite.SQLiteConfig.JournalMode;
import org.sqlite.SQLiteConfig.SynchronousMode;

/**
 * SQLite index of one run: one writer, any number of readers. Thread-safe. Derived from the topics, so written without
 * fsync and rebuilt after a power failure.
 */
public final class RunIndex implements AutoCloseable {
    /** Schema version; another one uses another folder. */
    public static final int FORM = 3;

    private static final String FILE = "index.db";

    private static final List<String> TABLES = List.of(
            "CREATE TABLE IF NOT EXISTS position(topic TEXT, partition INTEGER, next INTEGER, PRIMARY KEY(topic, partition))",
            "CREATE TABLE IF NOT EXISTS step(epoch INTEGER, batch INTEGER, version INTEGER, starved INTEGER, started_ms INTEGER,"
                    + " finished_ms INTEGER, partition INTEGER, offset INTEGER, entries TEXT, json TEXT, PRIMARY KEY(epoch, batch))",
            "CREATE TABLE IF NOT EXISTS batch(epoch INTEGER, batch INTEGER, assembled_version INTEGER, expected_version INTEGER,"
                    + " assembled_ms INTEGER, partition INTEGER, offset INTEGER, PRIMARY KEY(epoch, batch))",
            "CREATE TABLE IF NOT EXISTS rollout(partition INTEGER, offset INTEGER, epoch INTEGER, id TEXT, grp TEXT, sample INTEGER,"
                    + " ordinal INTEGER, generator TEXT, version_min INTEGER, version_max INTEGER, reward REAL, tokens INTEGER,"
                    + " policy_tokens INTEGER, prompt_tokens INTEGER, finish TEXT, started_ms INTEGER, finished_ms INTEGER,"
                    + " log_ratio REAL, proximal_version INTEGER, trajectory_partition INTEGER, trajectory_offset INTEGER,"
                    + " batch INTEGER, entry INTEGER, advantage REAL, staleness INTEGER, trained_tokens INTEGER, masked_by TEXT,"
                    + " dropped TEXT, outcome_partition INTEGER, outcome_offset INTEGER, refused TEXT, redriven INTEGER,"
                    + " prompt_text TEXT, text TEXT,"
                    + " PRIMARY KEY(partition, offset)) WITHOUT ROWID",
            "CREATE INDEX IF NOT EXISTS rollout_id ON rollout(id)",
            "CREATE INDEX IF NOT EXISTS rollout_grp ON rollout(grp)",
            "CREATE INDEX IF NOT EXISTS rollout_batch ON rollout(batch, entry)",
            "CREATE INDEX IF NOT EXISTS rollout_ordinal ON rollout(ordinal, sample)",
            "CREATE TABLE IF NOT EXISTS prompt(grp TEXT, epoch INTEGER, ordinal INTEGER, partition INTEGER, offset INTEGER,"
                    + " released_ms INTEGER, samples INTEGER, PRIMARY KEY(grp, partition, offset)) WITHOUT ROWID",
            "CREATE TABLE IF NOT EXISTS version(epoch INTEGER, version INTEGER, parent INTEGER, batch INTEGER, published_ms INTEGER,"
                    + " bytes INTEGER, base INTEGER, anchor INTEGER, sha256 TEXT, optimizer INTEGER, partition INTEGER, offset INTEGER,"
                    + " PRIMARY KEY(epoch, version))",
            "CREATE TABLE IF NOT EXISTS server(server TEXT PRIMARY KEY, role TEXT, version INTEGER, since_ms INTEGER,"
                    + " heartbeat_ms INTEGER, tokens INTEGER, left INTEGER, tokens_before INTEGER, heartbeat_before_ms INTEGER)",
            "CREATE TABLE IF NOT EXISTS served(server TEXT, epoch INTEGER, version INTEGER, role TEXT, since_ms INTEGER,"
                    + " PRIMARY KEY(server, epoch, version)) WITHOUT ROWID",
            "CREATE TABLE IF NOT EXISTS letter(partition INTEGER, offset INTEGER, written_ms INTEGER, reason TEXT, field TEXT,"
                    + " message TEXT, source TEXT, rollout TEXT, redriven INTEGER, PRIMARY KEY(partition, offset)) WITHOUT ROWID",
            EvaluationIndex.TABLE);

    /** Pooled readers: opening one costs more than most queries. */
    private static final int KEPT_READERS = 4;

    private final Path file;
    private final Connection writer;
    /** Prepared once for the many small transactions of a growing run. */
    private final IndexStatements statements;

    private final BlockingDeque<Connection> readers = new LinkedBlockingDeque<>(KEPT_READERS);
    private final AtomicLong changes = new AtomicLong();
    private final AtomicLong stepChanges = new AtomicLong();
    private volatile boolean isClosed;

    public interface Row {
        void read(ResultSet row) throws SQLException;
    }

    interface Work {
        void run(IndexStatements statements) throws SQLException;
    }

    private RunIndex(Path file, Connection writer) {
        this.file = file;
        this.writer = writer;
        this.statements = new IndexStatements(writer);
    }

    /** @throws IndexException if the folder cannot be written */
    public static RunIndex open(Path folder) {
        try {
            Files.createDirectories(folder);
            System.setProperty(
                    "org.sqlite.tmpdir", folder.toString()); // its native library, which a kill leaves behind
            Path file = folder.resolve(FILE);
            Connection writer = connect(file, false);
            try (Statement statement = writer.createStatement()) {
                for (String table : TABLES) {
                    statement.execute(table);
                }
            }
            writer.setAutoCommit(false);
            return new RunIndex(file, writer);
        } catch (IOException | SQLException e) {
            throw new IndexException(
                    "the page's index cannot be opened in " + folder + " (" + e.getMessage()
                            + "); remove that folder, or name another with --index",
                    e);
        }
    }

    private static Connection connect(Path file, boolean readOnly) throws SQLException {
        SQLiteConfig config = new SQLiteConfig();
        config.setJournalMode(JournalMode.WAL);
        config.setSynchronous(SynchronousMode.OFF);
        config.setBusyTimeout(10_000);
        config.setCacheSize(-16_000); // KiB
        config.setReadOnly(readOnly);
        Properties properties = config.toProperties();
        return java.sql.DriverManager.getConnection("jdbc:sqlite:" + file, properties);
    }

    /** Runs one transaction as the only writer. */
    synchronized void write(Work work) {
        try {
            try {
                work.run(statements);
                writer.commit();
                changes.incrementAndGet();
            } catch (SQLException | RuntimeException e) {
                writer.rollback();
                throw e;
            }
        } catch (SQLException e) {
            throw failed(e);
        }
    }

    /** Version of the contents: answers are valid while it is equal. */
    public long changes() {
        return changes.get();
    }

    /** As {@link #changes}, of steps alone. */
    public long stepChanges() {
        return stepChanges.get();
    }

    void noteSteps() {
        stepChanges.incrementAndGet();
    }

    /** Reads next to the writer. */
    public void read(String sql, List<?> arguments, Row row) {
        Connection reader = null;
        try {
            Connection kept = readers.pollFirst();
            reader = kept == null ? connect(file, true) : kept;
            try (PreparedStatement statement = reader.prepareStatement(sql)) {
                for (int i = 0; i < arguments.size(); i++) {
                    statement.setObject(i + 1, arguments.get(i));
                }
                try (ResultSet rows = statement.executeQuery()) {
                    while (rows.next()) {
                        row.read(rows);
                    }
                }
            }
        } catch (SQLException e) {
            throw failed(e);
        } finally {
            if (reader != null) {
                keep(reader);
            }
        }
    }

    private void keep(Connection reader) {
        try {
            if (isClosed || !readers.offerFirst(reader)) {
                reader.close();
            }
            if (isClosed) {
                closeReaders();
            }
        } catch (SQLException e) {
            throw failed(e);
        }
    }

    private void closeReaders() throws SQLException {
        for (Connection reader = readers.pollFirst(); reader != null; reader = readers.pollFirst()) {
            reader.close();
        }
    }

    /** Rows as JSON objects, with the columns' labels as names. */
    public List<ObjectNode> objects(String sql, List<?> arguments) {
        List<ObjectNode> objects = new ArrayList<>();
        read(sql, arguments, row -> {
            ObjectNode object = JsonNodeFactory.instance.objectNode();
            for (int column = 1; column <= row.getMetaData().getColumnCount(); column++) {
                String name = row.getMetaData().getColumnLabel(column);
                Object value = row.getObject(column);
                if (value instanceof Integer || value instanceof Long) {
                    object.put(name, row.getLong(column));
                } else if (value instanceof Number) {
                    object.put(name, row.getDouble(column));
                } else {
                    object.put(name, row.getString(column));
                }
            }
            objects.add(object);
        });
        return objects;
    }

    public List<Long> numbers(String sql, Object... arguments) {
        List<Long> numbers = new ArrayList<>();
        read(sql, List.of(arguments), row -> numbers.add(row.getLong(1)));
        return numbers;
    }

    public boolean isIn(Path folder) {
        return file.equals(folder.resolve(FILE));
    }

    private IndexException failed(SQLException e) {
        return new IndexException(
                "the page's index " + file + " failed (" + e.getMessage()
                        + "); start the view again, and if that does not help remove the folder",
                e);
    }

    @Override
    public synchronized void close() {
        try {
            isClosed = true;
            closeReaders();
            statements.close();
            writer.close();
        } catch (SQLException e) {
            throw failed(e);
        }
    }

    /** The index could not be read or written; delete its folder to rebuild it. */
    static final class IndexException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        IndexException(String message, Throwable cause) {
            super(message, cause);
        }
    }
}
