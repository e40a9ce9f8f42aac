package journal

// format is the version of the record format and part of the keys of records. A replica ignores records of other
// versions, so replicas of two versions can share a bucket during an update or a rollback. Increase it with each change
// that an older replica would misread.
const format = "1"
