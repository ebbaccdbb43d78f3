# By CPack, between the installation of the components to CPACK_TEMPORARY_DIRECTORY and the packages: programs and shared libraries
# lose their tables of symbols, and every package gets its copyright and its changelog.
foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} COMPONENT)
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
  file(GLOB_RECURSE binaries ${root}/bin/* ${root}/*/libsar_c.so.*)
  foreach(binary ${binaries})
    if(NOT IS_SYMLINK ${binary})
      execute_process(COMMAND strip --strip-unneeded --remove-section=.comment ${binary} COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endforeach()

  set(doc ${root}/share/doc/${CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME})
  file(MAKE_DIRECTORY ${doc})
  configure_file(${CPACK_SAR_SOURCE_DIR}/LICENSE ${doc}/copyright COPYONLY)
  execute_process(COMMAND gzip -9 --no-name --stdout ${CPACK_SAR_SOURCE_DIR}/CHANGELOG.md OUTPUT_FILE ${doc}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)
endforeach()
