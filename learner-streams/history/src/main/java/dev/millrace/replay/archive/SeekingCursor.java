package dev.millrace.replay.archive;

/** A cursor over files, which goes to another place for less than it costs to be opened. */
public interface SeekingCursor extends RecordCursor {

    /** Goes to the first record at this offset or behind it; back as well as on. */
    void seek(long offset);
}
